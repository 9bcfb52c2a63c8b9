"""The dashboard of ``txbatch ui``: pages about the topologies of a server, which change nothing.

`views/` turns what is known into what a page shows, `svg_charts` and `time_chart` draw; these are pure. `dashboard` and
`serving` answer a browser. Templates, style sheet and script are package data, and load nothing from other hosts.
It listens by `coordinator/serving/`; jinja2 is imported here only.
"""
