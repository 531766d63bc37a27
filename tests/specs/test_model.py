"""What follows from the shape of a model: counts by part, bytes, cache."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from simulator.specs.model import Experts, GroupedQueryAttention, LatentAttention, ModelSpec

PRECISIONS = ("bf16", "fp8", "fp4")
sizes = st.integers(1, 10_000)


@st.composite
def grouped_query(draw, num_layers):
    kv_heads = draw(st.integers(1, 16))
    windowed = draw(st.integers(0, num_layers))
    return GroupedQueryAttention(
        num_heads=kv_heads * draw(st.integers(1, 16)),
        num_kv_heads=kv_heads,
        head_dim=draw(st.integers(1, 256)),
        has_bias=draw(st.booleans()),
        has_qk_norm=draw(st.booleans()),
        window_tokens=draw(st.integers(1, 8_192)) if windowed else None,
        windowed_layers=windowed,
    )


@st.composite
def latent(draw):
    return LatentAttention(
        num_heads=draw(st.integers(1, 128)),
        q_lora_rank=draw(st.none() | sizes),
        kv_lora_rank=draw(sizes),
        qk_nope_head_dim=draw(sizes),
        qk_rope_head_dim=draw(sizes),
        v_head_dim=draw(sizes),
    )


@st.composite
def experts(draw):
    count = draw(st.integers(1, 512))
    shared = draw(st.integers(0, 2))
    return Experts(
        num_experts=count,
        experts_per_token=draw(st.integers(1, count)),
        intermediate=draw(sizes),
        num_shared_experts=shared,
        shared_intermediate=draw(sizes) if shared else 0,
    )


@st.composite
def models(draw):
    dense, expert_layers = draw(
        st.tuples(st.integers(0, 60), st.integers(0, 60)).filter(lambda layers: sum(layers) > 0)
    )
    return ModelSpec(
        name="random",
        num_layers=dense + expert_layers,
        hidden_size=draw(sizes),
        vocab_size=draw(sizes),
        ties_embeddings=draw(st.booleans()),
        attention=draw(latent() | grouped_query(dense + expert_layers)),
        dense_intermediate=draw(sizes) if dense else 0,
        num_dense_layers=dense,
        experts=draw(experts()) if expert_layers else None,
        num_expert_layers=expert_layers,
        num_mtp_layers=draw(st.integers(0, 3)),
        max_position_tokens=4_096,
    )


def tiny(**changes):
    fields = {
        "name": "tiny",
        "num_layers": 2,
        "hidden_size": 8,
        "vocab_size": 10,
        "attention": GroupedQueryAttention(num_heads=4, num_kv_heads=2, head_dim=3),
        "dense_intermediate": 5,
        "num_dense_layers": 2,
        "max_position_tokens": 64,
    }
    return ModelSpec(**{**fields, **changes})


def test_parts_by_hand():
    model = tiny()
    assert model.attention_parameters_per_layer == 8 * (4 * 3 + 2 * 2 * 3) + 4 * 3 * 8
    assert model.dense_feedforward_parameters_per_layer == 3 * 8 * 5
    assert model.embedding_parameters == model.head_parameters == 80
    norms = 2 * 2 * 8 + 8
    assert model.parameters == 2 * (288 + 120) + 160 + norms


def test_biases_and_head_norms_are_vectors():
    attention = {"num_heads": 4, "num_kv_heads": 2, "head_dim": 3}
    plain = GroupedQueryAttention(**attention)
    biased = GroupedQueryAttention(**attention, has_bias=True, has_qk_norm=True)
    assert plain.vector_parameters == 0
    assert biased.vector_parameters == (4 + 2 + 2) * 3 + 2 * 3
    assert biased.projection_parameters(8) == plain.projection_parameters(8)


def test_a_tied_head_is_stored_once_and_multiplied_all_the_same():
    tied, untied = tiny(ties_embeddings=True), tiny()
    assert tied.head_parameters == 0
    assert untied.parameters - tied.parameters == tied.embedding_parameters
    assert tied.active_matmul_parameters == untied.active_matmul_parameters


def test_latent_attention_caches_one_vector_for_all_heads():
    widths = {"kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64}
    few = LatentAttention(num_heads=8, q_lora_rank=None, v_head_dim=128, **widths)
    many = LatentAttention(num_heads=128, q_lora_rank=1_536, v_head_dim=128, **widths)
    assert few.kv_elements_per_token == many.kv_elements_per_token == 576


def test_a_copy_with_other_widths_is_counted_anew():
    model = tiny()
    before = model.parameters
    copy = model.model_copy(update={"vocab_size": 20})
    assert copy.parameters == before + 2 * 10 * 8


def test_bytes_of_each_precision():
    model = tiny()
    quantised = 2 * (288 + 120)
    rest = model.parameters - quantised
    assert model.weight_bytes("bf16") == 2 * model.parameters
    assert model.weight_bytes("fp8") == pytest.approx(quantised * (1 + 4 / 16_384) + 2 * rest)
    assert model.weight_bytes("fp4") == pytest.approx(quantised * (0.5 + 1 / 16) + 2 * rest)
    assert model.weight_bytes("mxfp4") == 2 * model.parameters  # it has no experts


def test_a_windowed_layer_stops_to_grow():
    attention = GroupedQueryAttention(
        num_heads=4, num_kv_heads=2, head_dim=3, window_tokens=16, windowed_layers=1
    )
    model = tiny(attention=attention)
    per_layer = 2 * 2 * 3 * 2
    expected = [2 * per_layer * 16, per_layer * (100 + 16)]
    assert model.kv_bytes([16, 100], "bf16").tolist() == expected


@given(models())
def test_parts_sum_to_the_whole(model):
    layers = (
        model.num_layers * (model.attention_parameters_per_layer + 2 * model.hidden_size)
        + model.num_dense_layers * model.dense_feedforward_parameters_per_layer
        + model.num_expert_layers
        * (model.shared_expert_parameters_per_layer + model.router_parameters_per_layer)
        + model.expert_parameters
    )
    ends = model.embedding_parameters + model.head_parameters + model.hidden_size
    assert model.parameters == layers + ends


@given(models())
def test_active_is_at_most_the_whole(model):
    assert 0 < model.active_matmul_parameters < model.active_parameters <= model.parameters
    assert model.is_moe == (model.expert_parameters > 0)
    if not model.is_moe:
        assert model.active_parameters == model.parameters


@given(models())
def test_fewer_bits_take_fewer_bytes(model):
    weights = [model.weight_bytes(precision) for precision in PRECISIONS]
    cache = [model.kv_bytes_per_token(precision) for precision in PRECISIONS]
    assert weights == sorted(weights, reverse=True)
    assert cache == sorted(cache, reverse=True)
    for precision in PRECISIONS:
        assert 0 <= model.expert_weight_bytes(precision) < model.weight_bytes(precision)


@given(models(), st.lists(st.integers(0, 10**6), min_size=1), st.sampled_from(PRECISIONS))
def test_cache_grows_with_context_and_at_most_linearly(model, contexts, precision):
    ordered = np.sort(np.asarray(contexts))
    cache = model.kv_bytes(ordered, precision)
    assert cache.shape == ordered.shape
    assert np.all(np.diff(cache) >= 0)
    assert np.all(cache <= model.kv_bytes_per_token(precision) * ordered * (1 + 1e-12))


@given(models(), st.sampled_from(PRECISIONS))
def test_a_single_token_takes_the_bytes_of_a_token(model, precision):
    assert model.kv_bytes(1, precision) == model.kv_bytes_per_token(precision)


@given(models())
def test_a_model_survives_being_written_and_read(model):
    assert ModelSpec.model_validate_json(model.model_dump_json()) == model
    assert hash(model) == hash(model.model_copy())


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"num_dense_layers": 1}, "must be num_layers 2"),
        ({"dense_intermediate": 0}, "dense_intermediate must be > 0"),
        ({"experts": Experts(num_experts=2, experts_per_token=1, intermediate=4)}, "exactly when"),
        ({"hidden_size": 0}, "hidden_size"),
        ({"vocab_size": float("nan")}, "vocab_size"),
        ({"hidden_sise": 4}, "hidden_sise"),
    ],
)
def test_a_model_that_contradicts_itself_is_refused(changes, told):
    with pytest.raises(ValidationError, match=told):
        tiny(**changes)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"num_kv_heads": 3}, "must divide num_heads"),
        ({"window_tokens": 8}, "together or not at all"),
        ({"windowed_layers": 1}, "together or not at all"),
    ],
)
def test_attention_that_contradicts_itself_is_refused(changes, told):
    with pytest.raises(ValidationError, match=told):
        GroupedQueryAttention(**{"num_heads": 4, "num_kv_heads": 2, "head_dim": 3, **changes})


def test_more_windowed_layers_than_layers_are_refused():
    attention = GroupedQueryAttention(
        num_heads=4, num_kv_heads=2, head_dim=3, window_tokens=8, windowed_layers=3
    )
    with pytest.raises(ValidationError, match="exceeds num_layers"):
        tiny(attention=attention)


def test_experts_that_contradict_themselves_are_refused():
    with pytest.raises(ValidationError, match="exceeds num_experts"):
        Experts(num_experts=2, experts_per_token=3, intermediate=4)
    with pytest.raises(ValidationError, match="both be 0"):
        Experts(num_experts=2, experts_per_token=1, intermediate=4, num_shared_experts=1)


@pytest.mark.parametrize("model", [ModelSpec, GroupedQueryAttention, LatentAttention, Experts])
def test_every_numeric_field_tells_its_unit(model):
    for name, field in model.model_fields.items():
        assert field.description, name
        if field.annotation in (int, int | None):
            assert field.description.endswith(("[1].", "[tokens].")), name
