"""The one HTTP layer: listening sockets, limits on clients, and checks of requests.

The dashboard and the metrics of a run use it. It does not know them, and is imported only with one of the extras `ui`
and `metrics`.
"""
