"""The project that ``txbatch init`` writes: the check of its name, the template's files, and how they are copied.

`template/` is a project that works as it is, under the name ``myproject``; none of our modules imports it.
"""
