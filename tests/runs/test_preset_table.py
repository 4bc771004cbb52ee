"""A table of presets: options that differ are columns, the others are listed once."""

from edhnn.runs.presets import Preset, tabulate


def test_options_that_differ_are_columns_and_the_others_are_common():
    table = tabulate(
        {
            "a": Preset(model="hgnn", options={"hidden": 8, "dropout": 0.5}, origin="one"),
            "b": Preset(model="hgnn", options={"hidden": 16, "dropout": 0.5}, train={"epochs": 3}, origin="one"),
        }
    )
    assert table.headings == ["dataset", "hidden", "epochs"]
    assert table.rows == [["a", "8", "default"], ["b", "16", "3"]]
    assert table.common == {"model": "hgnn", "dropout": 0.5}
    assert table.origins == ["one"]


def test_an_option_that_only_some_have_is_never_common():
    table = tabulate({"a": Preset(model="hgnn", options={"heads": 2}), "b": Preset(model="hgnn")})
    assert table.headings == ["dataset", "heads"]
    assert table.rows == [["a", "2"], ["b", "default"]]
