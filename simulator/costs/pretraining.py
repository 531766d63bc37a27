"""A published pre-training run priced by the trainer's cost model."""

from dataclasses import replace

from simulator.costs.packing import even
from simulator.costs.trainer import Trainer
from simulator.costs.trainer_links import TrainerHardware
from simulator.costs.trainer_memory import trainer_memory
from simulator.costs.training import update_s_of
from simulator.specs.model import ModelSpec
from simulator.specs.pretraining import PretrainingRow, published_gpus
from simulator.specs.trainer import TrainerParallelism
from simulator.specs.training import Training
from simulator.specs.training_fit import TrainingFit


def pretraining_trainer(row: PretrainingRow, model: ModelSpec, fit: TrainingFit) -> Trainer:
    """The trainer of a published run, as well tuned as it was.

    Weights count as sharded over data-parallel ranks where the state does not fit otherwise.
    """
    device, network = published_gpus()[row.gpu]
    ranks = TrainerParallelism(
        tensor=row.tensor,
        context=row.context,
        pipeline=row.pipeline,
        virtual_pipeline=row.virtual_pipeline,
        expert=row.expert,
        data=row.gpus // (row.tensor * row.context * row.pipeline),
        sharding="full" if row.sharding == "full" else "optimizer",
        recompute=row.recompute,
    )
    training = Training(
        precision=row.precision,
        fp8_scaling=row.fp8_scaling,
        micro_batch_tokens=row.micro_batch * row.sequence_tokens,
        expert_kernels="fused" if row.has_fused_experts else "looped",
        trains_mtp=model.num_mtp_layers > 0,
        efficiency=1.0,
        optimizer_step_s=0.0,
        logprob_passes=0,
    )
    trainer = Trainer(model, TrainerHardware(device, network, fit), training, ranks)
    if row.sharding == "auto":
        state = trainer_memory(trainer, row.sequence_tokens).state_bytes
        if state > device.hbm_bytes:
            ranks = ranks.model_copy(update={"sharding": "full"})
            return replace(trainer, ranks=ranks)
    return trainer


def tokens_per_s_per_gpu(row: PretrainingRow, model: ModelSpec, fit: TrainingFit) -> float:
    """Throughput that the model projects for a published run [tokens/s]."""
    trainer = pretraining_trainer(row, model, fit)
    data = trainer.ranks.data
    sequences = row.global_batch / data
    loads = even(
        sequences,
        row.sequence_tokens,
        max(round(sequences / row.micro_batch), 1),
        trainer.window_tokens,
    )
    step_s = update_s_of(trainer, loads) + trainer.optimizer_s()
    return row.global_batch * row.sequence_tokens / row.gpus / step_s
