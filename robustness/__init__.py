"""Whether the promises hold under failures (`chaos`), over time (`soak`) and at size (`scale`)."""
