"""Colour-blind-safe palette (Okabe and Ito, Color Universal Design, 2008) for light and dark themes.

Only marks are coloured; the theme of the page colours text and axes. A second channel (shape, dash, position)
always encodes the same information as the colour.
"""

from __future__ import annotations

from bws.base.charts import BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILION

GREY = "#8C8C8C"
"""For reference lines, intervals and unselected marks. Contrast 3.4:1 on white, 5.6:1 on black."""

PALETTE = (BLUE, ORANGE, GREEN, PURPLE, VERMILION, SKY)
"""Colours of categories, in order; yellow is omitted because of its low contrast on white."""

HOST = "127.0.0.1"
SETTINGS = {
    "server.address": HOST,
    "server.showEmailPrompt": "false",
    "server.fileWatcherType": "none",
    "browser.gatherUsageStats": "false",
    "runner.magicEnabled": "false",
    "client.toolbarMode": "minimal",
    "client.showErrorDetails": "none",  # unexpected errors are shown in the terminal
    "theme.light.primaryColor": "#00609A",  # the blue of the charts, with sufficient contrast on its own tint
    "theme.light.textColor": "#000000",
    "theme.light.codeTextColor": "#000000",
    "theme.dark.primaryColor": SKY,
    "theme.dark.codeTextColor": "#ffffff",
}
"""Settings of Streamlit."""
