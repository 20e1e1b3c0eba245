"""A batch of scenarios gives the same answers as each scenario alone."""

import dataclasses

import numpy as np
import pytest

import vegasmodel as vm
from tests.fluid.scenes import reno, scenario, vegas
from vegasmodel.engines.fluid import batch, continuous
from vegasmodel.engines.rounds import batch as many_by_rounds
from vegasmodel.scenario import Staggered

jax = pytest.importorskip("jax")


def cases():
    """Two flows, one flow, three flows, starts and stops; the fifth has no answer."""
    rng = np.random.default_rng(7)
    two = [
        [vegas(alpha, rtt=rng.uniform(0.03, 0.2), variant=variant), reno(rng.uniform(0.03, 0.2))]
        for alpha, variant in ((2.0, "ns2"), (3.0, "paper"), (4.0, "linux"))
    ]
    hopeless = [reno(0.06, count=3)]
    others = [
        [reno(initial_window=7.0)],
        hopeless,
        [vegas(count=2, start=Staggered(1.0, 3.0)), reno(0.05, start=2.0, stop=30.0)],
        [vegas(rtt=0.06, over_estimate=0.002), vegas(rtt=0.05, name="v2", max_window=9.0)],
    ]
    return [
        scenario(flows, 20.0 if flows is hopeless else rng.uniform(200, 2000), buffer, 60.0, 20.0)
        for flows, buffer in zip(
            two + others, (20.0, 40.0, 15.0, 30.0, 0.0, 25.0, 50.0), strict=True
        )
    ]


def one_by_one(scenarios, **options):
    return [continuous.run(s, sample=10.0, **options) for s in scenarios]


def agree(run, singles, rtol):
    for k, single in enumerate(singles):
        n = single.throughput.size
        assert run.ok[k] == (single.status == "done")
        for name in ("throughput", "rtt_mean", "base_rtt", "delivered"):
            np.testing.assert_allclose(
                getattr(run, name)[k, :n], getattr(single, name), rtol=rtol, err_msg=f"{k} {name}"
            ) if run.ok[k] else None
        assert np.all(np.isnan(run.throughput[k, n:]))
        assert run.ok[k] or np.all(np.isnan(run.throughput[k]))


def test_threads_give_what_single_runs_give():
    # whole cycles are left out once they repeat to 1e-9
    agree(batch.run(cases(), losers="growing"), one_by_one(cases()), 1e-8)


def test_a_failed_case_is_flagged_and_leaves_the_rest_alone():
    run = batch.run(cases(), losers="growing")
    assert list(np.flatnonzero(~run.ok)) == [4]
    assert np.all(np.isfinite(run.throughput[run.ok, 0]))
    assert np.all(np.isfinite(run.queue_mean[run.ok]))


@pytest.mark.parametrize("engine", batch.ENGINES)
def test_company_and_padding_change_nothing(engine):
    together = batch.run(cases(), losers="growing", engine=engine, chunk=4)
    some = cases()[:2]
    alone = batch.run(batch.pack([*some, cases()[2]], trains=False), engine=engine, chunk=4)
    for name in ("throughput", "rtt_mean", "losses"):
        a, b = getattr(alone, name)[:2, :2], getattr(together, name)[:2, :2]
        np.testing.assert_allclose(a, b, rtol=1e-9)


def test_jax_agrees_to_the_error_of_its_step():
    some = [case for i, case in enumerate(cases()) if i != 4]
    singles = one_by_one(some, step=0.1)
    coarse, fine = (
        batch.run(some, losers="growing", engine="jax", step=step, chunk=4)  # compiled before
        for step in (1.0, 0.25)
    )
    agree(fine, singles, 5e-3)
    errors = [
        max(
            np.abs(run.throughput[k, : s.throughput.size] / s.throughput - 1).max()
            for k, s in enumerate(singles)
        )
        for run in (coarse, fine)
    ]
    assert errors[1] < errors[0]


def test_jax_finds_the_end_of_a_slow_start_within_its_usual_step():
    """The late flow's slow start ends at gamma. If this is a step late, its share changes by 7 %.

    The other flow then sends less when the late one measures its baseRTT.
    """
    link, run = vm.Link(318.0, buffer=30.0), vm.Run(duration=40.0, warmup=20.0)
    both = {"alpha": 2, "beta": 2}
    flows = (
        vm.Flow("vegas", 0.0719, name="late", start=2.584, **both),
        vm.Flow("vegas", 0.1472, name="early", start=0.748, **both),
    )
    some = [vm.Scenario((link,), flows, run=run), *cases()[:3]]
    found = batch.run(some, losers="growing", engine="jax", chunk=4)  # compiled before
    single = continuous.run(some[0], losers="growing", step=0.1)
    assert found.throughput[0, :2] == pytest.approx(single.throughput, rel=5e-3)


def test_jax_configuration_is_left_alone():
    batch.run(cases()[:3], losers="growing", engine="jax")  # of shapes that were compiled before
    assert not jax.config.jax_enable_x64
    assert jax.numpy.ones(1).dtype == np.float32


def test_misuse():
    with pytest.raises(ValueError, match=r"scenario 1: .*random loss"):
        batch.pack([cases()[0], scenario([vegas()], loss=0.1)])
    with pytest.raises(ValueError, match="at least one"):
        batch.pack([])
    for options in ({"engine": "abacus"}, {"losers": "x"}, {"step": 0.0}):
        with pytest.raises(ValueError, match=r"engine|losers|step"):
            batch.run(cases()[:1], **options)


def test_no_scenarios_have_no_results():
    """``rounds`` and ``vm.batch`` returned empty results, and ``fluid`` an error."""
    none = batch.run([])
    assert none.throughput.shape == none.losses.shape == (0, 0)
    assert none.queue_mean.shape == none.ok.shape == (0,)
    assert many_by_rounds.run([]) == vm.batch([]) == ()
    with pytest.raises(ValueError, match=r"^engine: 'x' is not allowed"):
        batch.run([], engine="x")


def test_results_are_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        batch.run(cases()[:1]).ok = None


def test_random_starts_do_not_hide_that_a_scenario_fails():
    """No window yields at the overflow, so there is no answer, whoever starts first."""
    flows = [vegas(count=2, decrease=1.0), reno(decrease=1.0)]
    for late in (0.0, 5.0):
        case = scenario(flows, 500.0, 20.0, 60.0, 20.0)
        case = dataclasses.replace(case, run=dataclasses.replace(case.run, start_jitter=late))
        found = batch.run([case])
        assert not found.ok[0]
        assert np.isnan(found.throughput).all()
        assert np.isnan(found.losses).all()
