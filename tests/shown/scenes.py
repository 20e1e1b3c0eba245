"""A scenario, a prediction and a comparison that are shown in the tests."""

import dataclasses

import numpy as np

import vegasmodel as vm

S = vm.Scenario(
    [vm.Link("4 Mbit/s", buffer="20 pkt")],
    [vm.Flow("vegas", "80 ms", count=2), vm.Flow("reno", "80 ms", packet_size=1000.0, name="<b>")],
    packet_size=500.0,
    name="a & b",
)
P = vm.Prediction(
    "rounds", S, np.array([100.0, 200.0, 300.0]), base_rtt=np.array([0.08, 0.09, np.nan]),
    throughput_range=np.array([[90.0, 110.0], [180.0, 220.0], [280.0, 320.0]]),
    queue_mean=np.array([7.0]),
)  # fmt: skip
C = vm.Comparison(S, dataclasses.replace(P, model="ns2", throughput=P.throughput * 1.1), (P,))
