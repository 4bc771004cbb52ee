"""Records: appended, read back, and robust against incomplete lines."""

from concurrent.futures import ProcessPoolExecutor

import pytest

from edhnn import DataError, UsageError
from edhnn.experiments.records import Records, seconds_of

GOOD = '{"format": 1, "key": "1", "split": 0, "settings": {"dataset": "d", "model": "m"}, "seconds": 1'


def record(key, **more):
    facts = {"key": key, "split": 0, "settings": {"dataset": "d", "model": "m"}, "seconds": 1.0}
    return {**facts, **(more or {"metrics": {"value": 1.0}})}


def append_many(folder, prefix):
    for number in range(50):
        Records(folder).append("x", record(f"{prefix}-{number}", failed="é" * 300))


def test_appended_records_are_read(tmp_path):
    records = Records(tmp_path / "results")
    assert records.read() == []
    records.append("a", record("1", metrics={"value": float("nan")}))
    records.append("b", record("2", failed="why"))
    assert [each["key"] for each in records.read()] == ["1", "2"]
    assert records.read()[0]["metrics"] == {"value": None}
    assert records.keys() == {"1", "2"}


def test_several_processes_append_complete_lines(tmp_path):
    with ProcessPoolExecutor(2) as pool:
        list(pool.map(append_many, [tmp_path] * 2, ["a", "b"]))
    assert len(Records(tmp_path).keys()) == 100


def test_an_incomplete_last_line_is_ignored_and_then_removed(tmp_path):
    records = Records(tmp_path)
    records.append("a", record("1"))
    with (tmp_path / "a.jsonl").open("a") as stream:
        stream.write('{"format": 1, "key": "2", "val')
    assert records.keys() == {"1"}
    records.append("a", record("3"))
    assert records.keys() == {"1", "3"}
    assert len((tmp_path / "a.jsonl").read_text().splitlines()) == 2


def test_a_record_without_a_newline_is_kept(tmp_path):
    records = Records(tmp_path)
    for key in "12":
        records.append("a", record(key))
    file = tmp_path / "a.jsonl"
    file.write_bytes(file.read_bytes().removesuffix(b"\n"))
    assert records.keys() == {"1", "2"}
    records.append("a", record("3"))
    assert [each["key"] for each in records.read()] == ["1", "2", "3"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("not json", "not a JSON object"),
        ("[1]", "not a JSON object"),
        ('{"key": "1"}', "format of a record must be 1. Got None. Use the version"),
        ('{"format": 2, "key": "1"}', "format of a record must be 1. Got 2. Use the version"),
        ('{"format": 1}', "`key`"),
        ('{"format": 1, "key": "1"}', "`split`"),
        ('{"format": 1, "key": ["1"]}', "key"),
        ('{"format": 1, "key": "1", "split": 0, "settings": {}, "seconds": 1}', "`dataset`"),
        ('{"format": 1, "key": "1", "split": 0, "settings": {"dataset": "d", "model": "m"}}', "`seconds`"),
        (GOOD + "}", "must have `metrics` or `failed`"),
        (GOOD + ', "metrics": {"value": "abc"}}', "metrics.value"),
        (GOOD + ', "metrics": {"num_parameters": "many"}}', "metrics.num_parameters"),
        (GOOD + ', "metrics": {"train_seconds": "x"}}', "metrics.train_seconds"),
        (GOOD + ', "failed": "why", "machine": "x"}', "machine"),
        (GOOD + ', "failed": "why", "machine": {"a": [1]}}', "machine"),
        (GOOD.replace('"m"', '"m", "train": {"epochs": "x"}') + ', "failed": "why"}', "settings.train.epochs"),
    ],
)
def test_an_invalid_line_is_an_error_with_its_number(tmp_path, line, message):
    Records(tmp_path).append("a", record("0"))
    with (tmp_path / "a.jsonl").open("a") as stream:
        stream.write(line + "\n")
    with pytest.raises(DataError, match=rf"a.jsonl, line 2: .*{message}"):
        Records(tmp_path).read()


def test_only_appended_lines_are_read_again(tmp_path, monkeypatch):
    from edhnn.experiments import records as module

    parsed = []
    parse = module._parse
    monkeypatch.setattr(module, "_parse", lambda line, path, number: parsed.append(line) or parse(line, path, number))
    reader, writer = Records(tmp_path), Records(tmp_path)
    for key in "12":
        writer.append("b", record(key))
    assert [each["key"] for each in reader.read()] == ["1", "2"]
    writer.append("a", record("3"))
    writer.append("b", record("4"))
    with (tmp_path / "a.jsonl").open("a") as stream:
        stream.write('{"format": 1, "key": "5", "val')  # a kill
    assert reader.keys() == {"1", "2", "3", "4"}
    writer.append("a", record("6"))
    assert [each["key"] for each in reader.read()] == ["1", "2", "3", "4", "6"]
    assert len(parsed) == 5


def test_a_line_completed_later_is_one_record_and_line_numbers_stay_correct(tmp_path):
    file, records = tmp_path / "a.jsonl", Records(tmp_path)
    records.append("a", record("1"))
    file.write_bytes(file.read_bytes().removesuffix(b"\n"))
    assert len(records.read()) == 1
    records.append("a", record("2"))
    assert [each["key"] for each in records.read()] == ["1", "2"]
    with file.open("a") as stream:
        stream.write("not json\n")
    for _ in range(2):
        with pytest.raises(DataError, match="line 3"):
            records.read()


@pytest.mark.parametrize("change", ["shorter", "replaced", "removed"])
def test_a_file_that_was_not_only_appended_to_is_read_again(tmp_path, change):
    file, records = tmp_path / "a.jsonl", Records(tmp_path)
    for key in "12":
        records.append("a", record(key))
    records.append("b", record("3"))
    assert records.keys() == {"1", "2", "3"}
    first, second = file.read_bytes().splitlines(keepends=True)
    if change == "shorter":
        file.write_bytes(second)
    elif change == "replaced":
        (tmp_path / "new").write_bytes(second + second.replace(b'"2"', b'"4"') + first)
        (tmp_path / "new").rename(file)
    else:
        file.unlink()
    expected = {"shorter": {"2", "3"}, "replaced": {"1", "2", "3", "4"}, "removed": {"3"}}[change]
    assert records.keys() == expected


def test_a_file_instead_of_a_results_folder_is_an_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="must be a folder"):
        Records(tmp_path / "file")


def test_seconds_of_a_resumed_job_include_all_of_its_training():
    assert seconds_of({"seconds": 21.0, "metrics": {"train_seconds": 373.0}}) == 373.0
    assert seconds_of({"seconds": 380.0, "metrics": {"train_seconds": 373.0}}) == 380.0
    assert seconds_of({"seconds": 3.0, "failed": "why"}) == 3.0
