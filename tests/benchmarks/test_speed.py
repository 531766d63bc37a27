"""How long answers take: a whole question, one arm, and the price of iterations in bulk.

Seconds are CPU time of this process, so that a busy machine does not count. Nothing is asserted.
"""

import time

import numpy as np
import pytest

from simulator.analysis.projection import project
from simulator.costs.iteration import IterationShape, forward_pass
from simulator.pipeline.run import Runner
from simulator.specs.catalog import resolve
from simulator.specs.load import load_scenario

cpu_time = pytest.mark.benchmark(timer=time.process_time)


@cpu_time
def test_twenty_steps_of_the_512_gpu_scenario_with_its_baseline(benchmark):
    scenario = load_scenario("qwen3-235b-sync-512", ["steps=20"])
    projection = benchmark.pedantic(project, [scenario], rounds=3)
    assert projection.baseline is not None


@cpu_time
def test_one_replication_of_the_2048_gpu_scenario(benchmark):
    runner = Runner(resolve(load_scenario("qwen3-235b-async-2048")))
    replication = benchmark.pedantic(runner.run, [0], rounds=3)
    assert replication.loop.steps


@cpu_time
def test_ten_thousand_iterations_of_235b_in_bulk(benchmark):
    count = 10_000
    target = Runner(resolve(load_scenario("qwen3-235b-sync-512"))).placement.costs.target
    generator = np.random.default_rng(0)
    shape = IterationShape(
        sequences=generator.integers(1, 512, count).astype(float),
        context_tokens=generator.uniform(100.0, 30_000.0, count),
        query_tokens=4,
        prefill_tokens=np.zeros(count),
        prefill_context=np.zeros(count),
    )
    cost = benchmark.pedantic(forward_pass, [target, shape], rounds=5)
    assert np.all(cost.total_s > 0)
