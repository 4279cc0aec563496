# SPDX-License-Identifier: Apache-2.0
# Tokens that a model's folder names outside tokenizer.json: in tokenizer_config.json, special_tokens_map.json,
# added_tokens.json. Under model_folder, once a run.
# As transformers' AutoTokenizer has it, whose order of adding gives a token its number; without them a special token falls
# into pieces, and an end token without a number never ends a text.
import tokenizers

NAMED = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")


def token_of(given, special):
    """An AddedToken of what a file says; None for what is none."""
    if isinstance(given, str):
        return tokenizers.AddedToken(given, special=special, normalized=not special)
    if not isinstance(given, dict) or not isinstance(given.get("content"), str):
        return None
    flags = {name: bool(given[name]) for name in ("lstrip", "rstrip", "single_word", "normalized") if name in given}
    return tokenizers.AddedToken(given["content"], special=bool(given.get("special", special)), **flags)


def specials_of(config):
    """The tokens that have a role, or are special without one."""
    others = [*(config.get("additional_special_tokens") or []), *(config.get("extra_special_tokens") or [])]
    found = (token_of(each, True) for each in [*(config.get(name) for name in NAMED), *others])
    return [token for token in found if token]


def add_missing(tokenizer, config, added):
    """Adds to `tokenizer` what tokenizer_config.json and added_tokens.json name beside it; tokens whose number is another
    than the file's, as (token, the file's number, the tokenizer's)."""
    specials = specials_of(config)
    names = {token.content for token in specials}
    said = config.get("added_tokens_decoder")
    numbered = {int(number): token_of(each, False) for number, each in said.items()} if isinstance(said, dict) else \
        {number: token_of(name, name in names) for name, number in added.items() if isinstance(number, int)}
    there = {token.content for token in tokenizer.get_added_tokens_decoder().values()}
    for token in [*(token for _, token in sorted(numbered.items()) if token), *specials]:
        if token.content in there:
            continue
        there.add(token.content)
        (tokenizer.add_special_tokens if token.special or token.content in names else tokenizer.add_tokens)([token])
    return [(token.content, number, tokenizer.token_to_id(token.content)) for number, token in sorted(numbered.items())
            if token and tokenizer.token_to_id(token.content) != number]
