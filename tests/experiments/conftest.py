"""The smallest experiments, run once through the real command, and a real browser where there is one."""

import os
import shutil
import subprocess
import sys

import pytest

from edhnn.parallel import locked


@pytest.fixture(scope="session")
def smoke_results(tmp_path_factory):
    """Records of `edhnn run smoke`; several test processes share them."""
    root = tmp_path_factory.getbasetemp()
    root = root.parent if "PYTEST_XDIST_WORKER" in os.environ else root
    results = root / "smoke-results"
    with locked(root / "smoke.lock", wait=600.0) as mine:
        assert mine
        command = [sys.executable, "-m", "edhnn.cli.main", "run", "smoke", "--results", str(results)]
        subprocess.run(command, check=True, capture_output=True, timeout=600)
    return results


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    """A headless chromium with its driver; tests that need it are skipped, saying so, where there is none."""
    webdriver = pytest.importorskip("selenium.webdriver")
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip("no chromium with chromedriver here; on Debian: apt-get install chromium chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    options.add_argument("--headless=new")
    options.add_argument("--no-sandbox")
    options.add_argument("--disable-gpu")
    options.add_argument("--disable-dev-shm-usage")
    options.add_argument(f"--user-data-dir={tmp_path_factory.mktemp('browser')}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    found = webdriver.Chrome(options=options, service=webdriver.ChromeService(executable_path=driver))
    yield found
    found.quit()
