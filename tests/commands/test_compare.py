"""The command ``compare`` with a trace and with a stored run."""

from pathlib import Path

import pytest

from tests.commands.scenes import check_result, document
from vegasmodel.command_line.commands import run

LINUX = Path(__file__).parents[2] / "paper_checks" / "linux" / "e1a_2M_40ms_a3b3.toml"
TRACE = Path(__file__).parents[2] / "vegasmodel/packets/reference/linux/e1a_2M_40ms_a3b3.parquet"


def test_compare_with_a_trace(capsys: pytest.CaptureFixture[str]) -> None:
    doc = document(capsys, ["compare", str(LINUX), "--trace", str(TRACE), "--json"])
    measured = doc["results"][-1]
    assert measured["model"] == "trace"
    check_result(measured)
    # summary.csv of the runs: 0.2222 and 0.7778 of the link
    assert measured["ratios"]["first/second"] == pytest.approx(0.2222 / 0.7778, rel=0.01)
    for errors in doc["errors"].values():
        assert set(errors) == {"throughput_nrmse", "ratio", "base_rtt"}
    assert abs(doc["errors"]["rounds"]["throughput_nrmse"]) < 0.05
    strict = ["compare", str(LINUX), "--trace", str(TRACE), "--max-error", "0"]
    assert run(strict) == 1
    _, err = capsys.readouterr()
    worst = min(errors["throughput_nrmse"] for errors in doc["errors"].values())
    assert err.endswith(f"no model is within --max-error 0; the best errs by {worst:.2g}\n")


def test_compare_takes_a_model_as_predict_does(capsys: pytest.CaptureFixture[str]) -> None:
    doc = document(capsys, ["compare", str(LINUX), "--model", "bands", "--json"])
    assert [result["model"] for result in doc["results"]] == ["bands", "trace"]
    assert run(["compare", str(LINUX), "--model", "bandz"]) == 2
    assert "model: 'bandz' is not allowed" in capsys.readouterr().err


def test_the_stored_linux_run_is_found(capsys: pytest.CaptureFixture[str]) -> None:
    doc = document(capsys, ["compare", str(LINUX), "--json"])
    assert doc["results"][-1]["model"] == "trace"


def test_a_limit_of_the_error_may_be_in_percent(capsys: pytest.CaptureFixture[str]) -> None:
    line = ["compare", str(LINUX), "--trace", str(TRACE), "--max-error"]
    assert run([*line, "500 %"]) == 0
    assert run([*line, "0%"]) == 1
    assert "no model is within --max-error 0;" in capsys.readouterr().err
    for wrong in ("5 ms", "-1 %", "nan", ""):
        assert run([*line, wrong]) == 2
        said = (
            f'--max-error: {wrong!r} is not allowed; a fraction such as 0.05 or "5 %", at least 0'
        )
        assert said in capsys.readouterr().err
