"""The explorer's pages, a module each, with one function ``show(study: Study) -> None``.

`app.explorer` shows the page that the link names. A page takes its texts from `app.labels` (that of
``say("overview.items")`` stands in ``labels/en/overview.toml`` and in ``labels/de``), its state from
the widgets of `app.links` (parameters of one page start with its name, ``models-metric``), shows frames and
charts by `app.downloads`, problems by `app.telling`, and keeps what takes long with `app.caching.cached`.
"""
