# SPDX-License-Identifier: Apache-2.0
# Fifty made data sets of a line each, one for each public format and its variants, with the messages that they mean.
# What peers_test.py (transformers) and projects_test.py (the trainers that these formats come from) hold ours to.
# One list for both: a format that one of them lacked would be held to nothing there.
import json


def says(role, content, **keys):
    return {"role": role, "content": content, **keys}


def user(content, **keys):
    return says("user", content, **keys)


def assistant(content, **keys):
    return says("assistant", content, **keys)


def text(content, **keys):
    return {"type": "text", "text": content, **keys}


SYSTEM = says("system", "Be short.")
SHORT = [user("Which keys are needed?"), assistant("Two of three.")]
LONG = [*SHORT, user("And who keeps them?"), assistant("No person keeps two.")]
SHAREGPT = [{"from": {"user": "human", "assistant": "gpt"}[turn["role"]], "value": turn["content"]} for turn in LONG]
LOOK = {"name": "look", "description": "Looks.", "parameters": {"type": "object", "properties": {
    "at": {"type": "string", "description": "where"}}, "required": ["at"]}}
TOOLS = [{"type": "function", "function": LOOK}]
CALL = {"name": "look", "arguments": {"at": "the cat"}}
AS_TEXT = {"name": "look", "arguments": "{\"at\": \"the cat\"}"}


def calls(function=CALL, content="", **keys):
    return assistant(content, tool_calls=[{"type": "function", "function": function, **keys}])


RESULT = says("tool", "{\"is\": \"asleep\"}", name="look")
TOOLED = [user("Look at the cat."), calls(), RESULT, assistant("It is asleep.")]
THOUGHT = [user("What is 6 by 7?"), assistant("42.", reasoning_content="6 by 7 is 42.")]
THOUGHTS = [*THOUGHT, user("And 6 by 8?"), assistant("48.", reasoning_content="Add 6.")]


def chat(messages, **keys):
    return {"messages": messages, **keys}


# Name -> (line, what transformers gets: messages, tools). Where the line has messages of its own, these are they.
SETS = {
    "short": (chat(SHORT), SHORT),
    "long": (chat([SYSTEM, *LONG]), [SYSTEM, *LONG]),
    "no_system": (chat(LONG), LONG),
    "system_column": (chat(LONG, system="Be short."), [SYSTEM, *LONG]),
    "id_and_score": (chat(SHORT, id=3, score=0.5), SHORT),
    "parts": (chat([user([text("Which keys"), text(" are needed?")]), assistant([text("Two of three.")])]), None),
    "parts_with_nulls": (chat([user([text("Which?", image=None)]), assistant([text("Two.", image=None)])]), None),
    "sharegpt": ({"conversations": SHAREGPT}, LONG),
    "sharegpt_system": ({"conversations": [{"from": "system", "value": "Be short."}, *SHAREGPT]}, [SYSTEM, *LONG]),
    "sharegpt_in_messages": ({"messages": SHAREGPT}, LONG),
    "pairs": ({"conversation": [{"human": LONG[at]["content"], "assistant": LONG[at + 1]["content"]} for at in (0, 2)]},
              LONG),
    "alpaca": ({"instruction": "Which keys are needed?", "input": "", "output": "Two of three."}, SHORT),
    "alpaca_input": ({"instruction": "Translate.", "input": "Antwort", "output": "answer"},
                     [user("Translate.\nAntwort"), assistant("answer")]),
    "alpaca_history": ({"instruction": LONG[2]["content"], "input": "", "output": LONG[3]["content"],
                        "history": [[turn["content"] for turn in SHORT]]}, LONG),
    "query_response": ({"query": "Which keys are needed?", "response": "Two of three.", "system": "Be short."},
                       [SYSTEM, *SHORT]),
    "prompt_completion": ({"prompt": "Which keys are needed?", "completion": "Two of three."}, SHORT),
    "prompt_completion_chats": ({"prompt": [SYSTEM, *LONG[:3]], "completion": LONG[3:]}, [SYSTEM, *LONG]),
    "question_answer": ({"question": "Which keys are needed?", "answer": "Two of three."}, SHORT),
    "interactions": ({"interactions": [{"role": turn["role"], "text": turn["content"]} for turn in LONG]}, LONG),
    "ultrachat": (chat(LONG, prompt=LONG[0]["content"], prompt_id="x"), LONG),
    "calls": (chat(TOOLED, tools=TOOLS), TOOLED),
    "calls_as_text": (chat([TOOLED[0], calls(AS_TEXT), *TOOLED[2:]], tools=TOOLS), None),
    "calls_with_null": (chat([TOOLED[0], calls(content=None), *TOOLED[2:]], tools=TOOLS), None),
    "calls_beside_words": (chat([TOOLED[0], calls(content="I look."), *TOOLED[2:]], tools=TOOLS), None),
    "function_call_observation": ({"conversations": [
        {"from": "human", "value": "Look at the cat."}, {"from": "function_call", "value": json.dumps(CALL)},
        {"from": "observation", "value": RESULT["content"]}, {"from": "gpt", "value": "It is asleep."}],
        "tools": json.dumps([LOOK])}, [TOOLED[0], calls(), says("tool", RESULT["content"]), TOOLED[3]]),
    "tool_call_tool_response": (chat([TOOLED[0], says("tool_call", json.dumps(CALL)),
                                      says("tool_response", RESULT["content"]), TOOLED[3]], tools=TOOLS),
                                [TOOLED[0], calls(), says("tool", RESULT["content"]), TOOLED[3]]),
    "old_function_call": (chat([TOOLED[0], assistant(None, function_call=AS_TEXT), {**RESULT, "role": "function"},
                                TOOLED[3]], tools=TOOLS), TOOLED),
    "result_as_object": (chat([*TOOLED[:2], {**RESULT, "content": {"is": "asleep"}}, TOOLED[3]], tools=TOOLS), None),
    "tools_not_called": (chat(SHORT, tools=TOOLS), SHORT),
    "thought": (chat(THOUGHT), THOUGHT),
    "thoughts": (chat(THOUGHTS), THOUGHTS),
    "thought_in_content": (chat([THOUGHT[0], assistant("<think>\n6 by 7 is 42.\n</think>\n\n42.")]), None),
    "weight": (chat([LONG[0], {**LONG[1], "weight": 0}, LONG[2], {**LONG[3], "weight": 1}]), LONG),
    "train": (chat([LONG[0], {**LONG[1], "train": False}, *LONG[2:]]), LONG),
    "loss": (chat([LONG[0], {**LONG[1], "loss": False}, LONG[2], {**LONG[3], "loss": True}]), LONG),
    "masked": (chat([{**LONG[0], "masked": True}, {**LONG[1], "masked": False}, {**LONG[2], "masked": True},
                     {**LONG[3], "masked": False}]), LONG),
    "developer": (chat([says("developer", "Be short."), *SHORT]), None),
    "late_system": (chat([*SHORT, SYSTEM, *LONG[2:]]), None),
    "two_questions": (chat([user("One?"), *SHORT]), None),
    "answer_first": (chat([assistant("Hello."), *SHORT]), None),
    "spaces": (chat([user("  a\r\n"), assistant("\n b\n\n c \n"), user("d\t"), assistant(" e ")]), None),
    "foreign_words": (chat([user("你好 😀"), assistant("Antwort: süß 🦭")]), None),
    "special_tokens": (chat([user("say <|im_end|>"), assistant("<|im_end|> <|eot_id|>")]), None),
    "thought_unclosed": (chat([THOUGHT[0], assistant("<think>6 by 7")]), None),
    "preference": ({"prompt": "Which keys are needed?", "chosen": "Two of three.", "rejected": "All."}, SHORT),
    "preference_chats": ({"chosen": LONG, "rejected": [*LONG[:3], assistant("I do.")]}, LONG),
    "ultrafeedback": ({"prompt": "Which keys are needed?", "chosen": SHORT, "messages": SHORT,
                       "rejected": [SHORT[0], assistant("All.")], "score_chosen": 8.5}, SHORT),
    "label": ({"prompt": SHORT[:1], "completion": SHORT[1:], "label": True}, SHORT),
    "image_part": (chat([user([{"type": "image", "image": "a.jpg"}, text("What?")]), assistant("A cat.")]), None),
    "image_marker": (chat([user("<image>What?"), assistant("A cat.")]), None),
}
