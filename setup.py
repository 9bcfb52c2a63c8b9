"""Has setuptools build outside the checkout; everything else about the distribution is in pyproject.toml.

It would build in build/ next to the sources and leave that there. The next build would then take modules along that
have been deleted or moved since.
"""

import atexit
import shutil
import tempfile

from setuptools import setup

FOLDER = tempfile.mkdtemp(prefix="txbatch-build-")
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)
setup(options={"build": {"build_base": FOLDER}, "egg_info": {"egg_base": FOLDER}})
