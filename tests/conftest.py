"""What tests of several packages need."""

import shutil

import pytest

try:
    from hypothesis import HealthCheck, settings
except ImportError:
    pass
else:  # how long an example takes says nothing on a busy machine
    settings.register_profile(
        "untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )
    settings.load_profile("untimed")


@pytest.fixture(scope="module")
def chromium():
    """Return a browser; the test is skipped where there is none.

    Playwright's loop cannot run twice at a time in a process, and nothing else that has a loop can run beside
    it: so this is the only place that starts it, and it ends with the module.
    """
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    binary = shutil.which("chromium")
    if binary is None:
        pytest.skip("chromium is not installed")
    with playwright.sync_playwright() as running:
        browser = running.chromium.launch(
            executable_path=binary, args=["--no-sandbox", "--disable-background-networking"]
        )
        yield browser
        browser.close()
