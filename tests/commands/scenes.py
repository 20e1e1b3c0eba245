"""A call of ``ratio``, and checks of the JSON documents that the commands print."""

import json
from typing import Any

import pytest

from vegasmodel.command_line.commands import run

RATIO = [
    "ratio", "--capacity", "1080pkt/s", "--rtt", "60ms", "--buffer", "20pkt",
    "vegas:alpha=3,beta=3", "reno",
]  # fmt: skip
RESULT_KEYS = {
    "model", "applicable", "reason", "flows", "ratios", "shares", "shares_se", "laws", "jain",
    "utilization", "queue_mean_pkt", "assumptions", "seconds",
}  # fmt: skip
FLOW_KEYS = {
    "name", "law", "throughput_pps", "throughput_bps", "throughput_range_pps", "throughput_se_pps",
    "base_rtt_s", "rtt_mean_s", "loss_rate", "acks", "retransmits",
}  # fmt: skip


def document(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> dict[str, Any]:
    assert run(arguments) == 0
    out, _ = capsys.readouterr()
    result: dict[str, Any] = json.loads(out, parse_constant=pytest.fail)
    assert result["schema"] == 1
    return result


def check_result(result: dict[str, Any]) -> None:
    assert set(result) >= RESULT_KEYS
    for flow in result["flows"]:
        assert set(flow) == FLOW_KEYS
    for assumption in result["assumptions"]:
        assert set(assumption) == {"name", "holds", "detail"}
    if result["applicable"]:
        assert result["reason"] is None
    else:
        assert result["reason"]
        assert result["ratios"] == {}
