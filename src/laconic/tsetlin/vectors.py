"""Vector values for Numba: what the kernels say in words, LLVM turns into the widest instructions the CPU has.

Three vector types exist: `lanes8` and `lanes4` (64-bit lanes) and `bytes64`. A mask is a `bytes64` of 0 and 255:
vectors of single bits would be torn apart wherever they cross a branch on CPUs without mask registers. LLVM splits what
the CPU cannot do in one go; results are the same everywhere.
"""

from collections.abc import Callable
from functools import reduce
from typing import Any

from llvmlite import ir
from numba.core import cgutils
from numba.core import types as numba_types
from numba.core.datamodel.models import PrimitiveModel
from numba.core.registry import cpu_target
from numba.extending import intrinsic as numba_intrinsic
from numba.extending import register_model

# Numba imports half of itself when the first kernel is loaded; better here, with the other imports, than in a fit.
cpu_target.typing_context.refresh()
cpu_target.target_context.refresh()

# Numba hands types and LLVM builders around without types of its own.
Typing = Any
Builder = Any
Value = Any
Intrinsic = Callable[..., Any]

types: Any = numba_types
intrinsic: Callable[[Callable[..., Any]], Intrinsic] = numba_intrinsic

BIT, BYTE, HALF, WORD32, WORD = (ir.IntType(n) for n in (1, 8, 16, 32, 64))


class VectorType(types.Type):  # type: ignore[misc]
    """A fixed number of integers in one (possibly split) register."""

    def __init__(self, name: str, bits: int, count: int) -> None:
        self.llvm = ir.VectorType(ir.IntType(bits), count)
        super().__init__(name=name)


@register_model(VectorType)
class VectorModel(PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, vector: VectorType) -> None:
        super().__init__(manager, vector, vector.llvm)


lanes8 = VectorType("lanes8", 64, 8)
lanes4 = VectorType("lanes4", 64, 4)
bytes64 = VectorType("bytes64", 8, 64)


def _same(vector: ir.VectorType, value: int) -> ir.Constant:
    return ir.Constant(vector, [value] * vector.count)


def _splat(builder: Builder, scalar: Value, vector: ir.VectorType) -> Value:
    first = builder.insert_element(ir.Constant(vector, ir.Undefined), scalar, ir.Constant(WORD32, 0))
    return builder.shuffle_vector(
        first, ir.Constant(vector, ir.Undefined), _same(ir.VectorType(WORD32, vector.count), 0)
    )


def _call(builder: Builder, name: str, result: Any, arguments: list[Value]) -> Value:
    kind = ir.FunctionType(result, [a.type for a in arguments])
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), arguments)


def _operation(result: Any, arguments: tuple[Any, ...], emit: Callable[..., Value]) -> Intrinsic:
    """An intrinsic of fixed types from a function of (builder, *values)."""
    signature = result(*arguments)

    def generate(context: Any, builder: Builder, sig: Any, values: Any) -> Value:
        return emit(builder, *values)

    # `intrinsic` reads the parameter names of the typing function, so each arity is spelled out.
    match len(arguments):
        case 0:

            def typed0(typing: Typing) -> Any:
                return signature, generate

            return intrinsic(typed0)
        case 1:

            def typed1(typing: Typing, a: Any) -> Any:
                return signature, generate

            return intrinsic(typed1)
        case _:

            def typed2(typing: Typing, a: Any, b: Any) -> Any:
                return signature, generate

            return intrinsic(typed2)


# ---------------------------------------------------------------- lanes
and8 = _operation(lanes8, (lanes8, lanes8), lambda b, x, y: b.and_(x, y))
or8 = _operation(lanes8, (lanes8, lanes8), lambda b, x, y: b.or_(x, y))
xor8 = _operation(lanes8, (lanes8, lanes8), lambda b, x, y: b.xor(x, y))
and_not8 = _operation(lanes8, (lanes8, lanes8), lambda b, x, y: b.and_(x, b.not_(y)))
not8 = _operation(lanes8, (lanes8,), lambda b, x: b.not_(x))
and4 = _operation(lanes4, (lanes4, lanes4), lambda b, x, y: b.and_(x, y))
nothing4 = _operation(lanes4, (), lambda b: _same(lanes4.llvm, 0))
or4 = _operation(lanes4, (lanes4, lanes4), lambda b, x, y: b.or_(x, y))
double4 = _operation(lanes4, (lanes4,), lambda b, x: b.add(x, x))
and_not4 = _operation(lanes4, (lanes4, lanes4), lambda b, x, y: b.and_(x, b.not_(y)))
splat8 = _operation(lanes8, (types.uint64,), lambda b, x: _splat(b, x, lanes8.llvm))
shift_right8 = _operation(lanes8, (lanes8, types.uint64), lambda b, x, k: b.lshr(x, _splat(b, k, lanes8.llvm)))
shift_left8 = _operation(lanes8, (lanes8, types.uint64), lambda b, x, k: b.shl(x, _splat(b, k, lanes8.llvm)))


add8 = _operation(lanes8, (lanes8, lanes8), lambda b, x, y: b.add(x, y))
popcount8 = _operation(lanes8, (lanes8,), lambda b, x: _call(b, "llvm.ctpop.v8i64", lanes8.llvm, [x]))
sum8 = _operation(types.uint64, (lanes8,), lambda b, x: _call(b, "llvm.vector.reduce.add.v8i64", WORD, [x]))
popcount4 = _operation(lanes4, (lanes4,), lambda b, x: _call(b, "llvm.ctpop.v4i64", lanes4.llvm, [x]))
sum4 = _operation(types.uint64, (lanes4,), lambda b, x: _call(b, "llvm.vector.reduce.add.v4i64", WORD, [x]))


def _any(builder: Builder, vector: Value) -> Value:
    lanes = ir.IntType(vector.type.count)
    hit = builder.bitcast(builder.icmp_unsigned("!=", vector, _same(vector.type, 0)), lanes)
    return builder.sext(builder.icmp_unsigned("!=", hit, ir.Constant(lanes, 0)), WORD)


# -1 if any bit is set, else 0: an arithmetic mask, because LLVM turns `x if hit else 0` plus a store into a branch
any8 = _operation(types.int64, (lanes8,), _any)
any4 = _operation(types.int64, (lanes4,), _any)


# ---------------------------------------------------------------- bytes and masks
def _saturating(name: str) -> Callable[[Builder, Value, Value], Value]:
    def emit(builder: Builder, vector: Value, mask: Value) -> Value:
        step = builder.and_(mask, _same(bytes64.llvm, 1))
        return _call(builder, f"llvm.{name}.sat.v64i8", bytes64.llvm, [vector, step])

    return emit


def _bytes_at_most(builder: Builder, vector: Value, limit: Value) -> Value:
    below = builder.icmp_unsigned("<=", builder.bitcast(vector, bytes64.llvm), _splat(builder, limit, bytes64.llvm))
    return builder.sext(below, bytes64.llvm)


def _halves_at_most(builder: Builder, vector: Value, limit: Value) -> Value:
    halves = ir.VectorType(HALF, 32)
    below = builder.icmp_unsigned("<=", builder.bitcast(vector, halves), _splat(builder, limit, halves))
    return builder.zext(builder.bitcast(below, WORD32), WORD)


add_where = _operation(bytes64, (bytes64, bytes64), _saturating("uadd"))
subtract_where = _operation(bytes64, (bytes64, bytes64), _saturating("usub"))
double_bytes = _operation(bytes64, (bytes64,), lambda b, x: b.add(x, x))
bytes_at_most = _operation(bytes64, (lanes8, types.uint8), _bytes_at_most)
halves_at_most = _operation(types.uint64, (lanes8, types.uint16), _halves_at_most)  # 32 bits
mask_of = _operation(
    bytes64, (types.uint64,), lambda b, word: b.sext(b.bitcast(word, ir.VectorType(BIT, 64)), bytes64.llvm)
)
every_byte = _operation(bytes64, (types.boolean,), lambda b, x: _splat(b, b.sext(x, BYTE), bytes64.llvm))
mask_and = _operation(bytes64, (bytes64, bytes64), lambda b, x, y: b.and_(x, y))
mask_and_not = _operation(bytes64, (bytes64, bytes64), lambda b, x, y: b.and_(x, b.not_(y)))
# the sign bits of 64 bytes: which automata include
top_bits = _operation(
    types.uint64, (bytes64,), lambda b, x: b.bitcast(b.icmp_signed("<", x, _same(bytes64.llvm, 0)), WORD)
)
nonzero_bytes = _operation(
    types.uint64, (bytes64,), lambda b, x: b.bitcast(b.icmp_unsigned("!=", x, _same(bytes64.llvm, 0)), WORD)
)

# ---------------------------------------------------------------- words
_zero_is_64 = ir.Constant(BIT, 0)
trailing_zeros = _operation(types.uint64, (types.uint64,), lambda b, x: b.cttz(x, _zero_is_64))
leading_zeros = _operation(types.uint64, (types.uint64,), lambda b, x: b.ctlz(x, _zero_is_64))
popcount = _operation(types.uint64, (types.uint64,), lambda b, x: b.ctpop(x))


@intrinsic
def next_random(typing: Typing, low: Any, high: Any) -> Any:
    """Eight xoroshiro128 generators side by side: (64 random bytes, 64 more, new low, new high).

    Sum and difference of the two state words are as good as independent of each other (they share their lowest bit),
    which makes two vectors for the price of one step.
    """
    result = types.UniTuple(lanes8, 4)

    def generate(context: Any, b: Builder, sig: Any, values: Any) -> Value:
        def rotate(x: Value, k: int) -> Value:
            return b.or_(b.shl(x, _same(lanes8.llvm, k)), b.lshr(x, _same(lanes8.llvm, 64 - k)))

        s0, s1 = values
        mixed = b.xor(s1, s0)
        new = reduce(b.xor, (rotate(s0, 24), mixed, b.shl(mixed, _same(lanes8.llvm, 16))))
        return context.make_tuple(b, result, [b.add(s0, s1), b.sub(s0, s1), new, rotate(mixed, 37)])

    return result(lanes8, lanes8), generate


@intrinsic
def keep_apart(typing: Typing) -> Any:
    """Forbids LLVM to inline the function this is called in, so that its loop has all the registers."""

    def generate(context: Any, builder: Builder, sig: Any, values: Any) -> Value:
        builder.function.attributes.discard("alwaysinline")  # which Numba takes over from a caller that has it
        builder.function.attributes.add("noinline")
        return context.get_dummy_value()

    return types.void(), generate


# ---------------------------------------------------------------- memory
# Arrays inside hot loops cost reference counting (a third of the time in one measurement): kernels use bare pointers.
@intrinsic
def bare(typing: Typing, group: Any) -> Any:
    """A named tuple, or several nested ones, with every array replaced by the address of its data."""

    def strip_type(kind: Any) -> Any:
        if isinstance(kind, types.BaseNamedTuple):
            return types.NamedTuple([strip_type(member) for member in kind.types], kind.instance_class)
        return types.CPointer(kind.dtype) if isinstance(kind, types.Array) else kind

    def generate(context: Any, builder: Builder, sig: Any, values: Any) -> Value:
        def strip(kind: Any, value: Value) -> Value:
            if isinstance(kind, types.BaseNamedTuple):
                members = cgutils.unpack_tuple(builder, value, len(kind.types))
                stripped = [strip(k, member) for k, member in zip(kind.types, members, strict=True)]
                return context.make_tuple(builder, strip_type(kind), stripped)
            return (
                context.make_array(kind)(context, builder, value=value).data if isinstance(kind, types.Array) else value
            )

        return strip(group, values[0])

    return strip_type(group)(group), generate


class ReferenceType(types.Type):  # type: ignore[misc]
    """The address of a named tuple."""

    def __init__(self, group: Any) -> None:
        self.group = group
        super().__init__(name=f"reference({group})")


@register_model(ReferenceType)
class ReferenceModel(PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, reference: ReferenceType) -> None:
        super().__init__(manager, reference, manager.lookup(reference.group).get_value_type().as_pointer())


@intrinsic
def refer(typing: Typing, group: Any) -> Any:
    """The address of a copy of a (bare) named tuple, good until the function returns.

    By value, every member would be an argument of its own: sixty of them, pushed on the stack with each call.
    """

    def generate(context: Any, builder: Builder, sig: Any, values: Any) -> Value:
        return cgutils.alloca_once_value(builder, values[0])

    return ReferenceType(group)(group), generate


@intrinsic
def follow(typing: Typing, reference: Any) -> Any:
    """The named tuple at an address; members that are not used are not read."""

    def generate(context: Any, builder: Builder, sig: Any, values: Any) -> Value:
        def read(kind: Any, address: Value) -> Value:
            if not isinstance(kind, types.BaseNamedTuple):
                return builder.load(address)
            members = [read(k, cgutils.gep_inbounds(builder, address, 0, i)) for i, k in enumerate(kind.types)]
            return context.make_tuple(builder, kind, members)

        return read(reference.group, values[0])

    return reference.group(reference), generate


def _address(context: Any, builder: Builder, sig: Any, values: Any) -> Value:
    index = context.cast(builder, values[1], sig.args[1], types.intp)
    return builder.gep(values[0], [index], inbounds=True)


def _loader(result: Any, llvm: Any) -> Intrinsic:
    @intrinsic
    def load(typing: Typing, pointer: Any, index: Any) -> Any:
        def generate(context: Any, builder: Builder, sig: Any, values: Any) -> Value:
            address = _address(context, builder, sig, values)
            return builder.load(builder.bitcast(address, llvm.as_pointer()), align=1)

        return result(pointer, index), generate

    return load


def _storer(kind: Any, llvm: Any) -> Intrinsic:
    @intrinsic
    def store(typing: Typing, pointer: Any, index: Any, value: Any) -> Any:
        def generate(context: Any, builder: Builder, sig: Any, values: Any) -> Value:
            address = _address(context, builder, sig, values)
            builder.store(values[2], builder.bitcast(address, llvm.as_pointer()), align=1)
            return context.get_dummy_value()

        return types.void(pointer, index, kind), generate

    return store


# Loads and stores take the index of the first element, in elements of the pointer's own type, aligned or not.
load8, store8 = _loader(lanes8, lanes8.llvm), _storer(lanes8, lanes8.llvm)
load4, store4 = _loader(lanes4, lanes4.llvm), _storer(lanes4, lanes4.llvm)
load_bytes, store_bytes = _loader(bytes64, bytes64.llvm), _storer(bytes64, bytes64.llvm)
load_word, store_word = _loader(types.uint64, WORD), _storer(types.uint64, WORD)


@intrinsic
def store_apart(typing: Typing, pointer: Any, index: Any, step: Any, vector: Any) -> Any:
    """Each of eight lanes so many elements after the one before: single stores, which beat a CPU's own scattering."""

    def generate(context: Any, builder: Builder, sig: Any, values: Any) -> Value:
        address = _address(context, builder, sig, values)
        step = context.cast(builder, values[2], sig.args[2], types.intp)
        for lane in range(8):
            number = builder.extract_element(values[3], ir.Constant(WORD32, lane))
            builder.store(number, builder.bitcast(address, WORD.as_pointer()), align=1)
            address = builder.gep(address, [step], inbounds=True)
        return context.get_dummy_value()

    return types.void(pointer, index, step, lanes8), generate


@intrinsic
def widen8(typing: Typing, pointer: Any, index: Any) -> Any:
    """Eight consecutive bytes, one per lane."""
    octet = ir.VectorType(BYTE, 8)

    def generate(context: Any, builder: Builder, sig: Any, values: Any) -> Value:
        address = _address(context, builder, sig, values)
        return builder.zext(builder.load(builder.bitcast(address, octet.as_pointer()), align=1), lanes8.llvm)

    return lanes8(pointer, index), generate


def can_store_chosen() -> bool:
    """Whether the CPU compiled for does it in one go; others would take as many steps as there are numbers."""
    *_, features = cpu_target.target_context.codegen().magic_tuple()
    return "+avx512vbmi2" in features.split(",")


@intrinsic
def store_chosen(typing: Typing, target: Any, index: Any, source: Any, first: Any, chosen: Any) -> Any:
    """Those of 32 numbers whose bit is set, one after the other; what follows them in the target is lost."""

    def generate(context: Any, builder: Builder, sig: Any, values: Any) -> Value:
        number = values[0].type.pointee
        vector = ir.VectorType(number, 512 // number.width)  # what LLVM 22 makes of more than a register crashes
        bits, name = ir.IntType(vector.count), f"llvm.experimental.vector.compress.v{vector.count}i{number.width}"
        to = _address(context, builder, sig, values)
        origin = builder.gep(values[2], [context.cast(builder, values[3], sig.args[3], types.intp)], inbounds=True)
        for start in range(0, 32, vector.count):
            part = builder.trunc(builder.lshr(values[4], ir.Constant(WORD32, start)), bits)
            numbers = builder.load(builder.bitcast(origin, vector.as_pointer()), align=1)
            mask, nothing = builder.bitcast(part, ir.VectorType(BIT, vector.count)), ir.Constant(vector, ir.Undefined)
            packed = _call(builder, name, vector, [numbers, mask, nothing])
            builder.store(packed, builder.bitcast(to, vector.as_pointer()), align=1)
            to = builder.gep(to, [builder.zext(builder.ctpop(part), WORD)], inbounds=True)
            origin = builder.gep(origin, [ir.Constant(WORD, vector.count)], inbounds=True)
        return context.get_dummy_value()

    return types.void(target, index, source, first, types.uint32), generate


@intrinsic
def negative32(typing: Typing, pointer: Any, index: Any) -> Any:
    """32 bits: which of 32 consecutive int32 are negative."""
    vector = ir.VectorType(WORD32, 32)

    def generate(context: Any, builder: Builder, sig: Any, values: Any) -> Value:
        address = _address(context, builder, sig, values)
        loaded = builder.load(builder.bitcast(address, vector.as_pointer()), align=1)
        return builder.zext(builder.bitcast(builder.icmp_signed("<", loaded, _same(vector, 0)), WORD32), WORD)

    return types.uint64(pointer, index), generate


@intrinsic
def advance(typing: Typing, pointer: Any, elements: Any) -> Any:
    """The pointer, so many elements further on."""

    def generate(context: Any, builder: Builder, sig: Any, values: Any) -> Value:
        return _address(context, builder, sig, values)

    return pointer(pointer, elements), generate


@intrinsic
def as_bytes(typing: Typing, pointer: Any) -> Any:
    """The same address, to be counted on in bytes."""

    def generate(context: Any, builder: Builder, sig: Any, values: Any) -> Value:
        return builder.bitcast(values[0], BYTE.as_pointer())

    return types.CPointer(types.uint8)(pointer), generate


@intrinsic
def prefetch(typing: Typing, pointer: Any, index: Any) -> Any:
    """Asks for the cache line of an element ahead of its use."""

    def generate(context: Any, builder: Builder, sig: Any, values: Any) -> Value:
        address = builder.bitcast(_address(context, builder, sig, values), BYTE.as_pointer())
        hints = [ir.Constant(WORD32, hint) for hint in (0, 3, 1)]  # read, keep in all levels, data
        _call(builder, "llvm.prefetch.p0", ir.VoidType(), [address, *hints])
        return context.get_dummy_value()

    return types.void(pointer, index), generate
