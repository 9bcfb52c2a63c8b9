"""An archive of Spark's classes as Java has read and checked them, with which Java starts sooner: class data sharing.

Java ignores an archive of other classes than it is about to load, or of another Java, but starts more slowly than with
none, and it crashes on one that was cut short. So the name of an archive says what it was made of and how long it is.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from pyspark import SparkConf
from pyspark.find_spark_home import _find_spark_home

from state.codec import digest64, pack

JAVA_OPTIONS = "spark.driver.extraJavaOptions"
DEFAULT_OPTIONS = "spark.driver.defaultJavaOptions"
"""Stand before those of `JAVA_OPTIONS`: what is said there wins."""
CLASS_PATH = "spark.driver.extraClassPath"
CLASS_PATH_VARIABLES = ("SPARK_CONF_DIR", "HADOOP_CONF_DIR", "YARN_CONF_DIR", "SPARK_DIST_CLASSPATH")
OPTION_VARIABLES = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS")
OWN_CHOICE = re.compile(r"-Xshare|Archive")
"""Options of Java by which a user has decided about archives."""


def archive_options(conf: SparkConf) -> str:
    """Returns what has Java use the archive; empty if there is none that fits, or the user has decided (driver)."""
    said = [conf.get(key, "") or "" for key in (JAVA_OPTIONS, DEFAULT_OPTIONS)]
    said += [os.environ.get(name, "") for name in OPTION_VARIABLES]
    if any(map(OWN_CHOICE.search, said)) or conf.contains(CLASS_PATH):
        return ""
    try:
        found = find_archive()
    except (OSError, RuntimeError):  # no home, or none that may be read, or the archive has just been deleted
        return ""
    if found is None or set('":') & set(str(found)):  # Java reads two paths where there is a colon
        return ""
    return f'"-XX:SharedArchiveFile={found}" -Xlog:cds*=off'


def find_archive() -> Path | None:
    """Returns the archive of the Java and the Spark that would be started; None if there is no whole one of ours.

    Raises:
        OSError, RuntimeError: there is no cache that can be looked into.
    """
    for found in archive_folder().glob(f"{archive_name()}-*.jsa"):
        about = found.stat()
        if about.st_uid == os.getuid() and found.stem.endswith(f"-{about.st_size}"):
            return found
    return None


def archive_folder() -> Path:
    """Returns where archives are kept: a folder of the user's cache, which a relative path does not name."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (cache if cache.is_absolute() else Path.home() / ".cache") / "txbatch"


def archive_name() -> str:
    """Returns what an archive is called, but for its length: by what Java compares, itself and Spark's files."""
    home = os.environ.get("JAVA_HOME")
    java = Path(home, "bin", "java") if home else Path(shutil.which("java") or "java")
    files = [java.resolve(), *sorted(Path(_find_spark_home(), "jars").glob("*.jar"))]
    # whole seconds, as Java compares them: a layer of a container image has no others
    about = [(str(file), file.stat().st_size, int(file.stat().st_mtime)) for file in files if file.exists()]
    paths = [os.environ.get(name, "") for name in CLASS_PATH_VARIABLES]
    return f"spark-{digest64(pack([about, paths])):016x}"
