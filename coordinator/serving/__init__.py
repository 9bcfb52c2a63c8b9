"""The one HTTP layer: what listens, how much of it clients may take, and to whom it answers.

The dashboard and the metrics of a run are applications of it. This room knows nothing of either, and is imported only
where one of the extras `ui` and `metrics` is wanted.
"""
