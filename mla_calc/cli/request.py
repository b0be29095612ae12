"""From the options' text to what the cost engine takes: parsed, loaded, and checked against one another."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from os.path import exists, expanduser
from typing import TYPE_CHECKING, Any, TypeVar

from ..costs.layouts import Layout, load_layout
from ..costs.sharding import misfit
from ..errors import InputError, shown
from ..models.attention import MLA, Model
from ..models.load import load_model
from ..report import format as fmt
from ..report.record import Explanation
from ..sizes import parse_count, parse_counts

if TYPE_CHECKING:
    from ..arrays import Width
    from ..costs.formulas import Formula
    from ..costs.paths import Work
    from ..costs.tokens import Form
    from ..hardware.gpu import GPU
    from ..hardware.roofline import Ceilings

MAX_RECORDS = 10_000
"""Most records that one answer lists; `sweep` has no such limit."""
MAX_TP = 4096
MAX_BLOCK = 1 << 16
MAX_SEQS = 1 << 20

Value = TypeVar("Value")
Loaded = TypeVar("Loaded")
WEIGHT_BYTES = ("0.5", "1", "2", "4")

NO_GPU = "No --gpu: bounds are left out."
LEFT_OUT = "Softmax, RoPE and norms are not counted."
PER_RANK = "FLOPs, bytes and bounds are per rank and per layer; totals are over all layers that cache."


@dataclass(frozen=True, slots=True)
class Axes:
    """The values asked for of each option that takes a list."""

    tp: tuple[int, ...]
    batch: tuple[int, ...]
    queries: tuple[int, ...]
    context: tuple[int, ...]

    def points(self) -> list[tuple[int, int, int, int]]:
        """(tp, batch, queries, context), context fastest.

        Raises:
            InputError: more than :data:`MAX_RECORDS` of them.
        """
        check_records(len(self.tp) * len(self.batch) * len(self.queries) * len(self.context))
        return list(product(self.tp, self.batch, self.queries, self.context))

    def works(self, *, row_bytes: int, causal: bool, weight_bytes: Width) -> list[Work]:
        """The step at each of the points, in their order. Raises InputError as they do."""
        from ..costs.paths import Work

        same: dict[str, Any] = {"row_bytes": row_bytes, "causal": causal, "weight_bytes": weight_bytes}
        return [
            Work(tp=tp, batch=batch, queries=queries, context=context, **same)
            for tp, batch, queries, context in self.points()
        ]


def axes(tp: str = "1", batch: str = "1", queries: str = "1", context: str = "4096") -> Axes:
    """The four axes, parsed. Raises InputError for a value that is not understood."""
    return Axes(
        parse_counts(tp, "--tp", most=MAX_TP),
        parse_counts(batch, "--batch"),
        parse_counts(queries, "--queries"),
        parse_counts(context, "--context"),
    )


USUAL_TP = (1, 2, 4, 8, 16)


def usual_tps(models: Iterable[Model]) -> tuple[int, ...]:
    """Those of :data:`USUAL_TP` that every one of ``models`` can run at."""
    listed = list(models)
    return tuple(tp for tp in USUAL_TP if all(misfit(model, tp) is None for model in listed))


def check_records(count: int) -> None:
    """Refuse an answer of more than :data:`MAX_RECORDS` records."""
    if count > MAX_RECORDS:
        raise InputError(
            f"{count:,} points asked for; one answer lists at most {MAX_RECORDS:,}",
            "`mla-calc sweep` takes more",
        )


def mla_of(model: Model, command: str) -> MLA:
    """The model's MLA shapes.

    Raises:
        InputError: the model has no latent, so ``command`` has nothing to price.
    """
    if model.mla is None:
        raise InputError(
            f"{model.name} is {kind(model).partition('-')[0]} (no kv_lora_rank): `{command}` compares MLA's two paths",
            "`cache` and `intensity` take any model, and --vs sets one beside an MLA model",
        )
    return model.mla


def ceilings_of(gpu: str | None, mma_dtype: str) -> tuple[GPU | None, Ceilings | None]:
    """The GPU asked for and its datasheet ceilings, or nothing where none was asked for."""
    from ..hardware.gpu import DTYPES

    if mma_dtype not in DTYPES:
        raise InputError(f"--mma-dtype {shown(mma_dtype)}: one of {', '.join(DTYPES)} is accepted")
    if gpu is None:
        return None, None
    from ..hardware.load import load_gpu
    from ..hardware.roofline import datasheet_ceilings

    loaded = load_gpu(gpu)
    return loaded, datasheet_ceilings(loaded, mma_dtype)


def weight_width(text: str) -> Width:
    """Bytes per weight. Raises InputError for one that no weight format has."""
    if text not in WEIGHT_BYTES:
        raise InputError(f"--weight-bytes {shown(text)}: one of {', '.join(WEIGHT_BYTES)} is accepted")
    from fractions import Fraction

    return int(text) if text.isdigit() else Fraction(text)


def as_json(width: Width) -> int | float:
    """Bytes per value as JSON shows them: a whole number where they are one."""
    return width.numerator if width.denominator == 1 else float(width)


def max_model_lens(text: str | None, model: Model) -> tuple[int, ...]:
    """The lengths asked for, or the model's own.

    Raises:
        InputError: none is asked for and the model's is not known.
    """
    if text is not None:
        return parse_counts(text, "--max-model-len")
    if model.max_position_embeddings is None:
        raise InputError(f"the longest context of {model.name} is not known: give --max-model-len")
    return (model.max_position_embeddings,)


def cache_form(name: str, pad_head_dim: str | None) -> Form:
    """What is cached of an MLA token. Raises InputError for a width that is no number."""
    from ..costs.tokens import Form

    width = None if pad_head_dim is None else parse_count(pad_head_dim, "--pad-head-dim", most=1 << 16)
    return Form(name=name, pad_head_dim=width)


def one(values: Sequence[Value], option: str) -> Value:
    """The only value of an option that takes one."""
    if len(values) > 1:
        raise InputError(f"{option} takes one value here; {len(values):,} are given")
    return values[0]


def listed(names: Iterable[str] | None, option: str) -> tuple[str, ...]:
    """The entries of an option that may be repeated and whose values may be lists with commas, each once.

    Raises:
        InputError: an entry without a name.
    """
    found = [part for entry in names or () for part in parts(entry)]
    if not all(found):
        raise InputError(f"{option}: an entry of the list has no name")
    return tuple(dict.fromkeys(found))


def parts(entry: str) -> list[str]:
    """The names in a list with commas; a file or folder whose own path has commas is one."""
    return [entry] if exists(expanduser(entry)) else [part.strip() for part in entry.split(",")]


def each_once(load: Callable[[str], Loaded], names: Iterable[str]) -> dict[str, Loaded]:
    """What the names load, by the first name of each: an alias of one before it adds nothing."""
    found: dict[str, Loaded] = {}
    for name in names:
        loaded = load(name)
        if loaded not in found.values():
            found[name] = loaded
    return found


def comparators(names: list[str] | None, layout: Layout) -> tuple[tuple[tuple[Model, Layout], ...], list[str]]:
    """The models of ``--vs`` with the layout each is priced in, and notes where that is another one."""
    found: list[tuple[Model, Layout]] = []
    notes: list[str] = []
    for model in each_once(load_model, listed(names, "--vs")).values():
        its_layout = layout
        if model.gqa and not layout.heads:
            its_layout = load_layout("bf16")
            notes.append(f"{model.name} is priced in bf16: the layout {layout.name} stores MLA rows only.")
        found.append((model, its_layout))
    return tuple(found), notes


def geometry(model: Model) -> str:
    """The attention in words: ``MLA, 61 layers, latent 512 + rope 64``."""
    layers = fmt.counted(model.cached_layers, "layer")
    if model.cached_layers != model.transformer_layers:
        caches = fmt.counted(model.cached_layers, "cache")
        layers = f"{caches} in {fmt.counted(model.transformer_layers, 'layer')}"
    if model.mla:
        return f"MLA, {layers}, latent {model.mla.kv_lora_rank} + rope {model.mla.qk_rope_head_dim}"
    return f"{kind(model)}, {layers}, {_widths(model)}"


def kind(model: Model) -> str:
    """``MLA``, ``MHA`` or ``GQA-8``."""
    if model.gqa is None:
        return "MLA"
    return "MHA" if model.gqa.kv_heads == model.gqa.heads else f"GQA-{model.gqa.kv_heads}"


def _widths(model: Model) -> str:
    assert model.gqa
    if model.gqa.qk_head_dim == model.gqa.v_head_dim:
        return f"head width {model.gqa.qk_head_dim}"
    return f"key width {model.gqa.qk_head_dim}, value width {model.gqa.v_head_dim}"


def model_notes(model: Model) -> list[str]:
    """What a reader must know of where the model's dimensions come from."""
    if model.status == "secondary":
        return [f"{model.name}: the dimensions were read in a third party's copy of the config."]
    # a config's notes say what was decided in reading it; a preset's are for `presets show`
    return list(model.notes) if model.status == "config" else []


def errata_notes(model: Model, vs: Iterable[Model], **given: object) -> list[str]:
    """What was published wrongly of the figures that these options give; ``vs`` are the models beside."""
    names = {name for other in vs for name in (other.name, *other.aliases)}
    return [
        f"{erratum.source}: {erratum.note}"
        for erratum in model.errata
        if all(
            value in names if option == "vs" else value == given.get(option)
            for option, value in erratum.options.given().items()
        )
    ]


def context_notes(model: Model, contexts: Iterable[int | None]) -> list[str]:
    """A note where a context is longer than the model's own limit, which no count depends on."""
    longest, limit = max((context or 0 for context in contexts), default=0), model.max_position_embeddings
    if limit is None or longest <= limit:
        return []
    return [f"A context of {longest:,} is beyond the {limit:,} positions of {model.name} (max_position_embeddings)."]


def gpu_phrase(gpu: GPU, mma_dtype: str) -> str:
    """The GPU with the ceilings that were used: ``H100: 989.4 TFLOP/s dense bf16, 3.35 TB/s``."""
    peak = gpu.peak_flop_per_s(mma_dtype) / 1e12
    return f"{gpu.name}: {peak:,.4g} {fmt.rate_unit(mma_dtype)} dense {mma_dtype}, {gpu.memory.bandwidth_tbs:g} TB/s"


def explanations(
    formulas: Mapping[str, Formula], names: Mapping[str, int | float], single: bool = True
) -> tuple[Explanation, ...]:
    """The formulas as explanations over ``names``; of a list of records the first is explained."""
    return tuple(
        Explanation(path=path if single else f"[0].{path}", formula=formula.text, names=names, cite=formula.cite)
        for path, formula in formulas.items()
    )


def input_sources(models: Iterable[Model], layouts: Iterable[Layout], gpu: GPU | None) -> dict[str, tuple[str, ...]]:
    """Where each input was read: ``DeepSeek-V3 mla`` -> its sources."""
    found: dict[str, tuple[str, ...]] = {}
    for model in models:
        found |= {f"{model.name}, {field}": tuple(texts) for field, texts in model.sources.items()}
    for layout in layouts:
        found |= {f"layout {layout.name}, {field}": tuple(texts) for field, texts in layout.sources.items()}
    if gpu:
        used = ("default", "peak_tflops", "memory")
        found |= {f"{gpu.name}, {field}": tuple(gpu.sources[field]) for field in used if field in gpu.sources}
    return found


def source_list(sources: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Every source once, in order."""
    return tuple(dict.fromkeys(text for texts in sources.values() for text in texts))


def axes_of(records: Sequence[Any], names: tuple[str, ...]) -> dict[str, Any]:
    """The values of each option over the records: one as it is, several as a list."""
    values = {name: list(dict.fromkeys(getattr(record, name) for record in records)) for name in names}
    return {name: found[0] if len(found) == 1 else found for name, found in values.items()}


def results_of(records: list[dict[str, Any]], single: bool) -> dict[str, Any] | list[dict[str, Any]]:
    """One record as it is, several as a list."""
    return records[0] if single else records
