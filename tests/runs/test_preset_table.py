"""A table of presets: options that differ are columns, the others are said once."""

from edhnn.runs.presets import Preset, tabulate


def test_what_differs_is_a_column_and_what_does_not_is_said_once():
    found = tabulate(
        {
            "a": Preset(model="hgnn", options={"hidden": 8, "dropout": 0.5}, origin="one"),
            "b": Preset(model="hgnn", options={"hidden": 16, "dropout": 0.5}, train={"epochs": 3}, origin="one"),
        }
    )
    assert found.headings == ["dataset", "hidden", "epochs"]
    assert found.rows == [["a", "8", "default"], ["b", "16", "3"]]
    assert found.common == {"model": "hgnn", "dropout": 0.5}
    assert found.origins == ["one"]


def test_an_option_that_only_some_have_is_never_common():
    found = tabulate({"a": Preset(model="hgnn", options={"heads": 2}), "b": Preset(model="hgnn")})
    assert found.headings == ["dataset", "heads"]
    assert found.rows == [["a", "2"], ["b", "default"]]
