"""What a trainer's GPU must hold, and what its ``auto`` stands for."""

import numpy as np
import pytest

from simulator.costs.trainer import Trainer
from simulator.costs.trainer_links import TrainerHardware
from simulator.costs.trainer_memory import trainer_memory
from simulator.errors import InfeasibleError
from simulator.pipeline.trainer import choose_trainer
from simulator.specs.catalog import find_model, find_profile, resolve
from simulator.specs.trainer import TrainerParallelism
from simulator.specs.training import Training, TrainingParallelism
from simulator.units import GIB
from tests.small_scenario import small

H100 = TrainerHardware.of(find_profile("h100_sxm"))
LLAMA, QWEN_235B = find_model("Llama-3.1-8B"), find_model("Qwen3-235B-A22B")


def memory(model, tokens=4096, **ranks):
    training = Training(micro_batch_tokens=tokens)
    return trainer_memory(Trainer(model, H100, training, TrainerParallelism(**ranks)), tokens)


def chosen(**changes):
    return choose_trainer(resolve(small(**changes)))


def test_state_is_eighteen_bytes_a_parameter_and_copies_share_the_optimizer():
    alone = memory(LLAMA)
    assert alone.state_bytes == pytest.approx(18 * LLAMA.parameters)
    assert memory(LLAMA, data=8).state_bytes == pytest.approx(LLAMA.parameters * (6 + 12 / 8))
    sharded = memory(LLAMA, data=8, sharding="full")
    assert sharded.state_bytes == pytest.approx(LLAMA.parameters * (18 / 8 + 6 / LLAMA.num_layers))


def test_experts_are_divided_over_their_own_ranks():
    split = memory(QWEN_235B, tensor=2, data=32, expert=64)
    experts = QWEN_235B.expert_parameters
    rest = QWEN_235B.parameters - experts
    assert split.weight_bytes == pytest.approx(2 * (rest / 2 + experts / 64))
    assert split.optimizer_bytes == pytest.approx(12 * (rest / 64 + experts / 64))


def test_activations_of_a_dense_layer_are_korthikantis_thirty_four():
    """34 s b h bytes with dropout and two-matrix networks; Llama's three matrices come close."""
    per_token = memory(LLAMA, tokens=1).activation_bytes / LLAMA.num_layers
    assert per_token == pytest.approx(34 * LLAMA.hidden_size, rel=0.03)


def test_recomputation_and_ranks_save_activations():
    none, selective, full = (
        memory(LLAMA, recompute=kind).activation_bytes for kind in ("none", "selective", "full")
    )
    assert full < 0.2 * selective < selective < none
    assert memory(LLAMA, tensor=4).activation_bytes == pytest.approx(none / 4)
    assert memory(LLAMA, context=4).logit_bytes == pytest.approx(memory(LLAMA).logit_bytes / 4)
    # p micro-batches of 1/p of the layers are in flight on the first stage.
    assert memory(LLAMA, pipeline=4).activation_bytes == pytest.approx(none)
    assert memory(LLAMA, pipeline=4, virtual_pipeline=2).activation_bytes == pytest.approx(
        none * (1 + 3 / 8)
    )


def test_auto_takes_a_sharding_that_fits_and_divides():
    trainer = chosen(cluster__gpus=16, cluster__hardware="h100_sxm")
    assert trainer.ranks.gpus == 16
    budget = trainer_memory(trainer, 4196)
    assert budget.missing_bytes(H100.device.hbm_bytes) == 0.0


def test_what_is_asked_is_kept():
    asked = {"tensor": 2, "pipeline": 2, "virtual_pipeline": 3, "context": 2}
    trainer = chosen(cluster__gpus=16, training__parallelism=asked, training__recompute="selective")
    ranks = trainer.ranks
    assert (ranks.tensor, ranks.pipeline, ranks.virtual_pipeline, ranks.context) == (2, 2, 3, 2)
    assert (ranks.data, ranks.recompute) == (2, "selective")
    assert ranks.describe() == "TP2 x CP2 x PP2 x DP2, selective recomputation"


def test_a_refusal_names_the_missing_gib_of_each_gpu():
    with pytest.raises(InfeasibleError, match=r"lacks \d+\.\d GiB on each; weights") as refusal:
        chosen(model="Qwen3-235B-A22B", cluster__gpus=8, engine={}, speculation={}, baseline=...)
    assert "training Qwen3-235B-A22B on 8 GPUs" in str(refusal.value)


def test_ranks_that_do_not_divide_are_refused():
    with pytest.raises(
        InfeasibleError, match="no such sharding divides both Qwen3-8B and the 4 GPUs"
    ):
        chosen(training__parallelism={"tensor": 8})
    with pytest.raises(InfeasibleError, match="no such sharding"):
        chosen(training__parallelism={"tensor": 2, "data": 4})


def test_bad_ranks_are_refused_with_what_is_allowed():
    with pytest.raises(ValueError, match="tensor: 0 is not allowed; 1 to 1000000"):
        TrainingParallelism(tensor=0)
    with pytest.raises(ValueError, match="virtual_pipeline: 4 needs pipeline above 1"):
        TrainingParallelism(pipeline=1, virtual_pipeline=4)
    with pytest.raises(ValueError, match="expert 3 must divide"):
        TrainerParallelism(expert=3, data=4)


def test_more_memory_never_makes_the_choice_slower():
    """What fits on a small GPU fits on a large one, so the fastest can only improve."""
    resolved = resolve(small(cluster__gpus=8, cluster__hardware="h100_sxm", model="Qwen3-14B"))
    from dataclasses import replace

    from simulator.costs.training import training_cost

    lengths, seconds = np.full(32, 900), []
    for factor in (1.0, 2.0, 4.0):
        device = resolved.profile.device
        larger = device.model_copy(update={"hbm_bytes": factor * device.hbm_bytes})
        profile = resolved.profile.model_copy(update={"device": larger})
        cost = training_cost(choose_trainer(replace(resolved, profile=profile)), lengths)
        seconds.append(cost.logprob_s + cost.training_s)
    assert seconds == sorted(seconds, reverse=True)


def test_the_state_of_a_large_model_does_not_fit_on_one_host():
    assert memory(QWEN_235B, data=8, expert=8).missing_bytes(H100.device.hbm_bytes) > 100 * GIB
