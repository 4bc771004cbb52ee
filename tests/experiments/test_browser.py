"""The page of the smallest experiments in a browser: no errors, tables sort, plots are drawn, nothing overflows."""

import subprocess
import sys

import pytest

from edhnn.experiments.spec import find_experiments
from tests.experiments.made import made_records, write_records

WIDTHS = (390, 1280)


@pytest.fixture(scope="module")
def page(browser, tmp_path_factory):  # no page is written if there is no browser
    pytest.importorskip("plotly")
    folder = tmp_path_factory.mktemp("report")
    for experiment in find_experiments("smoke"):
        rows = [row.label for row in experiment.row]
        records = made_records(experiment, lambda cell, split, rows=rows: 50.0 + 7 * rows.index(cell.row) + split)
        write_records(folder / "results", records)
    command = [sys.executable, "-m", "edhnn.cli.main", "report", "smoke", "--results", str(folder / "results")]
    subprocess.run([*command, "--out", str(folder)], check=True, capture_output=True, timeout=120)
    return folder / "index.html"


@pytest.fixture
def opened(browser, page):
    """The page, opened offline."""
    browser.execute_cdp_cmd("Network.enable", {})
    browser.execute_cdp_cmd(
        "Network.emulateNetworkConditions",
        {"offline": True, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0},
    )
    resize(browser, 1280)
    browser.get(page.as_uri())
    yield browser
    assert [entry for entry in browser.get_log("browser") if entry["level"] != "DEBUG"] == []


def resize(browser, width):
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def column(browser, index):
    """Return the numbers of a column of the first table, from top to bottom."""
    script = """
    const table = document.querySelector('#smoke').closest('section').querySelector('table');
    const rows = table.querySelectorAll('tbody tr');
    return [...rows].filter((row) => row.offsetParent && !row.matches('.group'))
        .map((row) => row.cells[arguments[0]].dataset.sort);
    """
    return [None if text is None else float(text) for text in browser.execute_script(script, index)]


def heading(browser, index):
    from selenium.webdriver.common.by import By

    return browser.find_elements(By.CSS_SELECTOR, "table.sortable")[0].find_elements(By.TAG_NAME, "th")[index]


def test_a_click_or_a_key_on_a_heading_sorts(opened):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    before = column(opened, 2)
    button = heading(opened, 2).find_element(By.TAG_NAME, "button")
    button.click()
    assert heading(opened, 2).get_attribute("aria-sort") == "descending"
    assert column(opened, 2) == sorted(before, reverse=True)
    button.send_keys(Keys.ENTER)
    assert heading(opened, 2).get_attribute("aria-sort") == "ascending"
    assert column(opened, 2) == sorted(before)
    button.click()
    assert heading(opened, 2).get_attribute("aria-sort") == "none"
    assert column(opened, 2) == before


def test_a_group_heading_precedes_only_its_own_rows(opened):
    script = """
    const table = document.querySelector('#smoke').closest('section').querySelector('table');
    return [...table.tBodies].map((body) => [body.querySelectorAll('[scope=rowgroup]').length,
        new Set([...body.querySelectorAll('tr:not(.group)')].map((row) => row.className)).size, body.rows.length]);
    """
    before = opened.execute_script(script)
    assert len(before) > 1
    assert all(heads == kinds == 1 for heads, kinds, _ in before)
    for _ in range(3):
        heading(opened, 2).click()
    assert opened.execute_script(script) == before


def test_floors_stay_shaded_when_sorted(opened):
    script = """
    return [...document.querySelectorAll('#smoke ~ .scroll tr.floor')].map((row) =>
        [row.cells[0].textContent, getComputedStyle(row.cells[1]).backgroundColor]);
    """
    heading(opened, 1).click()
    floors = dict(opened.execute_script(script))
    assert set(floors) == {"Features alone: L1 logistic", "Features alone: true class means", "MLP"}
    assert set(floors.values()) == {"rgb(243, 244, 241)"}


def test_every_plot_shows_all_curves(opened):
    script = """
    return [...document.querySelectorAll('.plot')].map((plot) =>
        [plot.querySelectorAll('svg .scatterlayer .trace').length, plot.data.length, plot.offsetHeight]);
    """
    drawn = opened.execute_script(script)
    assert len(drawn) == 1
    for traces, curves, height in drawn:
        assert traces == curves >= 2
        assert height > 300


@pytest.mark.parametrize("width", WIDTHS)
def test_the_page_fits_the_screen_and_tables_scroll_in_their_boxes(opened, width):
    resize(opened, width)
    opened.refresh()
    opened.execute_script("for (const one of document.querySelectorAll('details')) one.open = true")
    assert opened.execute_script("return document.documentElement.scrollWidth") <= width
    boxes = "return [...document.querySelectorAll('.scroll')].map((box) => box.getBoundingClientRect().right)"
    assert max(opened.execute_script(boxes)) <= width


def test_a_link_to_a_specification_opens_it(opened):
    opened.execute_script("document.querySelector('a[href=\"#spec-smoke\"]').click()")
    opened.execute_async_script("setTimeout(arguments[0], 50)")
    assert opened.execute_script("return document.getElementById('spec-smoke').open")
