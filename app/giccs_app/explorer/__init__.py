"""The score explorer: one package per page, and the modules that the pages share.

`streamlit_app` shows the page given by the link: ``show(study: Study) -> None`` in its module `page`. In the
same package, `data` computes the data frames and `charts` draws them; neither imports Streamlit. The texts of
a page are in `labels` (``say("overview.items")`` is in ``labels/en/overview.toml`` and
``labels/de/overview.toml``), its state is in the widgets of `links`. Tables, charts and messages are shown
with `display`; results are cached with `caching.cached`.
"""
