# SPDX-License-Identifier: Apache-2.0
# A text that was tokenized -> tokens with a bit each, of the length that was asked for.
# Fifth step of `sealift-train tokenize`.
# A token counts where it overlaps what the model is to learn, as transformers' assistant masks have it.
from line_notes import Bad


class TooLong(Exception):
    """An example that --truncation-strategy delete leaves out."""


def counted(encoding, spans):
    """One byte for each token, b"1" where it overlaps a span; spans are in order and apart."""
    bits, at = bytearray(b"0" * len(encoding.ids)), 0
    for number, (begin, end) in enumerate(encoding.offsets):
        while at < len(spans) and spans[at][1] <= begin:
            at += 1
        if at < len(spans) and begin < spans[at][1] and end > spans[at][0]:
            bits[number] = ord("1")
    return bits


def tokens_of(part, encodings, model):
    """(ids, bits) of a text whose pieces were tokenized; of an answer by itself all counts, but for a first token that
    begins a text."""
    end = model.end
    ids, bits = list(encodings[0].ids), counted(encodings[0], part.spans)
    for encoding in encodings[1:]:
        found = encoding.ids[1:] if encoding.ids[:1] == [model.begin] else encoding.ids
        ids += found
        bits += b"1" * len(found)
    if part.special and end is not None and (not ids or ids[-1] != end):
        ids.append(end)
        bits += b"1"
    elif part.special and end is not None and ids:
        bits[-1:] = b"1"
    return ids, bits


def shares(source, target, most):
    """How many tokens LLaMA-Factory keeps of a question and of its answer."""
    if target * 2 < most:
        kept = most
    elif source * 2 < most:
        kept = most - source
    else:
        kept = int(most * (target / (source + target)))
    target = min(kept, target)
    return min(max(most - target, 0), source), target


def cut_by_pairs(ids, bits, most):
    """LLaMA-Factory's: each question and its answer, a run of tokens that count, share what is left of `most`."""
    kept, at = (list(), bytearray()), 0
    while at < len(ids) and len(kept[0]) < most:
        begin = bits.find(b"1", at)
        begin = len(ids) if begin < 0 else begin
        end = bits.find(b"0", begin)
        end = len(ids) if end < 0 else end
        source, target = shares(begin - at, end - begin, most - len(kept[0]))
        for first, count in ((at, source), (begin, target)):
            kept[0].extend(ids[first:first + count])
            kept[1].extend(bits[first:first + count])
        at = end
    return kept


def cut(ids, bits, options):
    """The sequences that --max-length and --truncation-strategy make of one."""
    most = options.max_length
    if not most or len(ids) <= most:
        return [(ids, bits)]
    if options.truncation_strategy == "raise":
        raise Bad(f"has {len(ids)} tokens, more than --max-length {most}; choose a --truncation-strategy")
    if options.truncation_strategy == "delete":
        raise TooLong
    if options.truncation_strategy == "pairs":
        return [cut_by_pairs(ids, bits, most)]
    if options.truncation_strategy == "split":
        return [(ids[begin:begin + most], bits[begin:begin + most]) for begin in range(0, len(ids), most)]
    return [(ids[:most], bits[:most])] if options.truncation_strategy == "right" else [(ids[-most:], bits[-most:])]


def checked(ids, bits, model):
    if not ids:
        raise Bad("has no tokens")
    if max(ids) >= model.vocabulary:
        raise SystemExit(f"the tokenizer gives token {max(ids)}, and the model's vocab_size is {model.vocabulary}; the "
                         "tokenizer is not this model's")
    if b"1" not in bits[1:]:
        raise Bad("has no token of an answer to learn, or none that is left after truncation")
    return ids, bits


def sequences_of(example, parts, encodings, model, options):
    """Lists of the sequences of each example that one line makes: one, or those of a text that is split."""
    cuts = [cut(*tokens_of(part, of_part, model), options) for part, of_part in zip(parts, encodings)]
    if example.kind == "text":
        pieces = [piece for piece in cuts[0] if len(piece[0]) > 1 or len(cuts[0]) == 1]
        return [[checked(*piece, model)] for piece in pieces]
    return [[checked(*pieces[0], model) for pieces in cuts]]
