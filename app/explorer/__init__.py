"""The score explorer: one folder per page, and the modules that the pages share.

`streamlit_app` shows the page that the link names: ``show(study: Study) -> None`` of its module `page`. Next
to it, `data` computes the data frames and `charts` draws them; neither of the two imports Streamlit. A page
takes its texts from `labels` (``say("overview.items")`` is in ``labels/en/overview.toml`` and the same file
of ``labels/de``) and its state from the widgets of `links` (parameters of one page start with its name:
``models-metric``). It shows tables and charts with `downloads`, problems with `messages`, and caches results
with `caching.cached`.
"""
