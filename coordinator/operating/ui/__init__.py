"""The dashboard of ``txbatch ui``: pages about the topologies of a server, which change nothing.

`views/` prepares the content of pages, `svg_charts` and `time_chart` draw; these are pure. `dashboard` and `serving`
answer a browser, through `coordinator/serving/`. Templates, style sheet and script are package data, and load nothing
from other hosts. Only this package imports jinja2.
"""
