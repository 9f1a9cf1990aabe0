"""Import of chat logs: published shapes, system prompts, tools, content parts, ids, invalid content."""

import gzip
import json

import pytest
from click.testing import CliRunner

from bws.base.problems import InputError
from giccs.cli.building import build
from giccs.preparation.transcripts.importing import import_transcripts


def user(content):
    return {"role": "user", "content": content}


def assistant(content):
    return {"role": "assistant", "content": content}


SYSTEM = {"role": "system", "content": "Be brief."}
TEXT = {"type": "text", "text": "Hi"}
IMAGE = {"type": "image_url", "image_url": {"url": "x"}}
ASKED = [("user", "Hi"), ("system", "Yes?"), ("user", "A film?")]
MESSAGES = [user("Hi"), assistant("Yes?"), user("A film?")]
SHARED = [
    {"from": f, "value": v} for f, v in (("human", "Hi"), ("gpt", "Yes?"), ("human", "A film?"))
]
PARTS = [
    {"role": role, "parts": [{"text": text}]}
    for role, text in (("user", "Hi"), ("model", "Yes?"), ("user", "A film?"))
]
SENT = [
    {"uuid": text, "sender": who, "text": text, "content": [{"type": "text", "text": text}]}
    for who, text in (("human", "Hi"), ("assistant", "Yes?"), ("human", "A film?"))
]
NODES = [
    {"message_id": name, "parent_id": parent, "text": text, "role": role, "lang": "en", "rank": rank}
    for name, parent, text, role, rank in (
        ("t", None, "Hi", "prompter", None), ("u", "t", "Go away.", "assistant", 1),
        ("v", "t", "Yes?", "assistant", 0), ("w", "v", "A film?", "prompter", None),
    )
]  # fmt: skip
TREE = {**NODES[0], "replies": [{**NODES[1], "replies": []},
                                {**NODES[2], "replies": [{**NODES[3], "replies": []}]}]}  # fmt: skip


def said(role, text, parent):
    content = {"content_type": "text", "parts": [text]}
    return {"message": {"author": {"role": role}, "content": content}, "parent": parent}


MAPPING = {
    "root": {"message": None, "parent": None},
    "a": said("user", "Hi", "root"),
    "b": said("assistant", "Yes?", "a"),
    "b2": said("assistant", "Go away.", "a"),
    "c": said("user", "A film?", "b"),
}
SHAPES = {
    "messages": ({"messages": MESSAGES}, "chats-1"),
    "messages with an id": ({"id": 7, "messages": MESSAGES}, "7"),
    "ultrachat": ({"prompt": "Hi", "prompt_id": "p", "messages": MESSAGES}, "p"),
    "ShareGPT": ({"id": "s", "conversations": SHARED}, "s"),
    "ShareGPT with roles": ({"conversations": MESSAGES}, "chats-1"),
    "LMSYS": ({"conversation_id": "c", "conversation": MESSAGES}, "c"),
    "WildChat": ({"conversation_hash": "h", "conversation": MESSAGES}, "h"),
    "request of OpenAI": (
        {"custom_id": "r", "method": "POST", "url": "/v1/chat/completions",
         "body": {"model": "m", "messages": MESSAGES}}, "r",
    ),
    "request of the Responses API": (
        {"custom_id": "r", "url": "/v1/responses", "body": {"model": "m", "input": MESSAGES}}, "r",
    ),
    "request of Anthropic": ({"custom_id": "r", "params": {"messages": MESSAGES}}, "r"),
    "prompt and completion": ({"prompt": MESSAGES[:2], "completion": MESSAGES[2:]}, "chats-1"),
    "preference": ({"chosen": MESSAGES}, "chats-1"),
    "Alpaca": (
        {"instruction": "A film?", "input": "", "output": "Which?", "history": [["Hi", "Yes?"]]}, "chats-1",
    ),
    "Gemini": ({"contents": PARTS}, "chats-1"),
    "tree of OpenAssistant": ({"message_tree_id": "t", "prompt": TREE}, "t"),
    "thread of OpenAssistant": ({"thread_id": "w", "thread": [NODES[0], *NODES[2:]]}, "w"),
    "export of ChatGPT": ({"id": "g", "mapping": MAPPING, "current_node": "c"}, "g"),
    "export of Claude": ({"uuid": "q", "chat_messages": SENT}, "q"),
    "preference of OpenAI": (
        {"input": {"messages": MESSAGES[:2]}, "preferred_output": MESSAGES[2:], "id": "o"}, "o",
    ),
    "input and output": ({"input": MESSAGES[:2], "output": MESSAGES[2:]}, "chats-1"),
    "a list of messages": (MESSAGES, "chats-1"),
}  # fmt: skip


def lines(path, values):
    path.write_text("".join(f"{json.dumps(value)}\n" for value in values), "utf-8")
    return path


def turns(dialogue):
    return [(turn.speaker, turn.text) for turn in dialogue.turns]


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("form", ["lines", "array", "gz"])
def test_a_published_shape_is_a_dialogue_with_its_id(tmp_path, name, form):
    values, dialogue_id = SHAPES[name]
    more = {"messages": [user("One"), assistant("Two")]}
    path = tmp_path / "chats.jsonl"
    if form == "array":
        path = tmp_path / "chats.json"
        path.write_text(json.dumps([values, more], indent=2))
    elif form == "gz":
        path = tmp_path / "chats.json.gz"
        path.write_bytes(gzip.compress(json.dumps([values, more]).encode()))
    else:
        lines(path, [values, more])
    result = import_transcripts([path])
    assert [d.dialogue_id for d in result.dialogues] == [dialogue_id, "chats-2"]
    expected = ASKED if name != "Alpaca" else [*ASKED, ("system", "Which?")]
    assert turns(result.dialogues[0]) == expected
    assert turns(result.dialogues[1]) == [("user", "One"), ("system", "Two")]
    assert not [w for w in result.warnings if "skipped" in w.message]


def test_what_is_left_out_is_counted(tmp_path):
    calls = {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}, {"id": "2"}]}
    chat = [
        SYSTEM, {"role": "developer", "content": "Use German."}, user([TEXT, IMAGE, {**TEXT, "text": "all"}]),
        calls, {"role": "tool", "tool_call_id": "1", "content": "42"}, assistant("It is 42."), user("Good."),
        {**assistant("Bye"), "reasoning_content": "Be polite."},
    ]  # fmt: skip
    blocks = [
        user([TEXT]),
        assistant([{"type": "thinking", "thinking": "…"}, TEXT]),
        user([{"type": "tool_result"}]),
    ]
    path = lines(
        tmp_path / "c.jsonl", [{"messages": chat}, {"system": "Be brief.", "messages": blocks}]
    )
    result = import_transcripts([path])
    assert [turns(d) for d in result.dialogues] == [
        [("user", "Hi all"), ("system", "It is 42."), ("user", "Good."), ("system", "Bye")],
        [("user", "Hi"), ("system", "Hi")],
    ]
    assert sorted(result.notes) == [
        "1 content parts of type image_url left out", "1 content parts of type thinking left out",
        "1 content parts of type tool_result left out", "1 messages of tools left out",
        "2 messages without text left out", "2 tool calls left out", "3 system messages left out",
    ]  # fmt: skip
    assert result.unused == {"messages.reasoning_content": 1}


@pytest.mark.parametrize("role", ["function_call", "observation", "function-response", "ipython"])
def test_calls_and_results_of_tools_in_sharegpt_are_left_out(tmp_path, role):
    path = lines(
        tmp_path / "c.jsonl", [{"conversations": [*SHARED, {"from": role, "value": "{}"}]}]
    )
    result = import_transcripts([path])
    assert turns(result.dialogues[0]) == ASKED
    assert result.notes == ("1 messages of tools left out",)


def test_a_system_that_answers_is_a_speaker(tmp_path):
    bot = [
        {"role": "system", "content": "Welcome."},
        user("Hi"),
        {"role": "system", "content": "Yes?"},
    ]
    path = lines(
        tmp_path / "c.jsonl", [{"messages": bot}, {"messages": [SYSTEM, user("Hi"), user("Hey")]}]
    )
    result = import_transcripts([path])
    assert [turns(d) for d in result.dialogues] == [
        [("system", "Welcome."), ("user", "Hi"), ("system", "Yes?")],
        [("user", "Hi"), ("user", "Hey")],
    ]


def answer(name, *texts):
    choices = [{"index": n, "message": assistant(text)} for n, text in enumerate(texts)]
    return {
        "custom_id": name,
        "response": {"status_code": 200, "body": {"choices": choices}},
        "error": None,
    }


def test_answers_of_a_batch_are_the_last_turns_of_its_requests(tmp_path):
    requests = [
        {
            "custom_id": f"r{n}",
            "body": {"messages": [SYSTEM, user(f"Hi {n}"), assistant("Yes?"), user("Go")]},
        }
        for n in range(4)
    ]
    responses = {
        "output": [{"type": "reasoning"}, assistant([{"type": "output_text", "text": "Film 2"}])]
    }
    answers = [
        {"custom_id": "r3", "result": {"message": assistant([{**TEXT, "text": "Film 3"}])}},
        {"custom_id": "r2", "response": {"body": responses}}, answer("r0", "Film 0", "Other"),
        {"custom_id": "r1", "response": None, "error": {"code": "expired"}},
    ]  # fmt: skip
    paths = lines(tmp_path / "in.jsonl", requests), lines(tmp_path / "out.jsonl", answers)
    result = import_transcripts(paths)
    last = [dialogue.turns[-1].text for dialogue in result.dialogues]
    assert last == ["Film 0", "Go", "Film 2", "Film 3"]
    assert {len(dialogue.turns) for dialogue in result.dialogues} == {3, 4}
    assert {"1 further choices of an answer left out", "1 requests without an answer"} < set(
        result.notes
    )
    with pytest.raises(InputError, match=r"out.jsonl:1: the request 'r3' is in no file; expected"):
        import_transcripts(paths[1:])


def test_an_object_of_unknown_shape_is_named_by_its_keys(tmp_path):
    path = lines(tmp_path / "c.jsonl", [{"conversation_a": MESSAGES, "conversation_b": MESSAGES}])
    with pytest.raises(
        InputError, match=r"the object \(keys: conversation_a, conversation_b\) has"
    ):
        import_transcripts([path])


def test_a_second_answer_to_a_request_is_an_error(tmp_path):
    requests = [{"custom_id": name, "body": {"messages": [user(name)]}} for name in ("r1", "r2")]
    asked = lines(tmp_path / "in.jsonl", requests)
    answers = [answer("r1", "one"), answer("r2", "three"), answer("r1", "two")]
    with pytest.raises(InputError) as caught:
        import_transcripts([asked, lines(tmp_path / "out.jsonl", answers)])
    assert str(caught.value).endswith(
        f"out.jsonl:3: the request 'r1' is also answered in line 1 of {tmp_path / 'out.jsonl'}; "
        "expected one answer per request"
    )
    files = [lines(tmp_path / f"{n}.jsonl", [answer("r1", "one")]) for n in range(2)]
    with pytest.raises(InputError, match=r"1.jsonl:1: the request 'r1' is also answered in line 1"):
        import_transcripts([asked, *files])


@pytest.mark.parametrize(
    "end",
    [
        {
            "response": {
                "body": {"choices": [{"message": assistant("x"), "finish_reason": "length"}]}
            }
        },
        {"response": {"body": {"status": "incomplete", "output": [assistant("x")]}}},
        {"result": {"message": {**assistant("x"), "stop_reason": "max_tokens"}}},
    ],
)
def test_cut_answers_are_counted(tmp_path, end):
    rows = [{"custom_id": "r", "body": {"messages": [user("Hi")]}}, {"custom_id": "r", **end}]
    result = import_transcripts([lines(tmp_path / "c.jsonl", rows)])
    assert turns(result.dialogues[0]) == [("user", "Hi"), ("system", "x")]
    assert result.notes == ("1 answers that the maximum number of tokens cut",)


@pytest.mark.parametrize("empty", [[], "", {}, None])
def test_a_message_with_empty_content_has_its_text(tmp_path, empty):
    sent = [*SENT, {"sender": "assistant", "text": "Bye", "content": empty}]
    result = import_transcripts([lines(tmp_path / "c.jsonl", [{"chat_messages": sent}])])
    assert turns(result.dialogues[0]) == [*ASKED, ("system", "Bye")]
    assert result.notes == ()


def test_logs_of_one_name_and_a_log_given_twice_are_errors_with_a_remedy(tmp_path):
    paths = []
    for folder in ("da", "db"):
        (tmp_path / folder).mkdir()
        paths.append(lines(tmp_path / folder / "chats.jsonl", [{"messages": MESSAGES}]))
    with pytest.raises(InputError, match=r"dialogue chats-1 is also in .*: rename a file"):
        import_transcripts(paths)
    with pytest.raises(InputError, match="is given twice; expected other files"):
        import_transcripts([paths[0], paths[0]])


@pytest.mark.parametrize("key", ["conversation_hash", "id"])
def test_equal_dialogues_of_one_id_are_counted(tmp_path, key):
    rows = [{key: "h", "conversation": MESSAGES}] * 3
    result = import_transcripts([lines(tmp_path / "c.jsonl", rows)])
    assert [turns(dialogue) for dialogue in result.dialogues] == [ASKED]
    assert result.notes == ("2 dialogues equal to an earlier one of the same id left out",)


def test_messages_without_a_conversation_belong_to_their_dialogue(tmp_path):
    rows = [
        {"conversation_id": c, **m}
        for c in "ab"
        for m in (SYSTEM, user(f"Hi {c}"), assistant("Yes?"))
    ]
    result = import_transcripts([lines(tmp_path / "m.jsonl", rows)])
    assert [(d.dialogue_id, d.turns[0].text, len(d.turns)) for d in result.dialogues] == [
        ("a", "Hi a", 2), ("b", "Hi b", 2),
    ]  # fmt: skip
    assert result.notes == ("2 system messages left out",)
    one = tmp_path / "one.json"
    one.write_text(json.dumps([SYSTEM, *MESSAGES]))
    assert turns(import_transcripts([one]).dialogues[0]) == ASKED


def test_messages_of_openassistant_are_joined_by_their_parents(tmp_path):
    lost = {**NODES[0], "message_id": "z", "parent_id": "gone"}
    result = import_transcripts([lines(tmp_path / "m.jsonl", [*NODES, lost])])
    assert [(d.dialogue_id, d.language, turns(d)) for d in result.dialogues] == [("t", "en", ASKED)]
    assert result.notes == (
        "1 messages without their tree left out",
        "1 messages of other branches left out",
    )


def test_names_of_languages_are_left_out_and_tags_are_kept(tmp_path):
    rows = [
        {"id": n, "messages": [user(f"Hi {n}"), assistant("Yes?")], "language": n}
        for n in ("English", "de")
    ]
    result = import_transcripts([lines(tmp_path / "m.jsonl", rows)])
    assert [dialogue.language for dialogue in result.dialogues] == [None, "de"]
    assert result.notes == ("1 names of languages left out (--language TAG sets a language)",)


def test_a_conversation_without_turns_is_reported(tmp_path):
    rows = [{"messages": []}, {"messages": [SYSTEM]}, {"messages": MESSAGES}]
    result = import_transcripts([lines(tmp_path / "m.jsonl", rows)])
    assert result.counts["dialogues"] == 1
    assert result.counts["dialogues_left_out"] == 2
    assert "m-1 has fewer than two turns; skipped" in str(result.warnings[2])


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            [{"messages": [user(5), user("Hi")]}],
            "object 1: message 1: content is int; expected text or parts",
        ),
        ([{"messages": [user("Hi"), {"content": "x"}]}], "object 1: message 2: no role; expected"),
        ([{"messages": MESSAGES}, 7], "object 2: not a JSON object (it is 7)"),
        (
            [{"id": 1, "messages": MESSAGES[:n]} for n in (2, 3)],
            "object 2: repeats the dialogue '1' of object 1",
        ),
    ],
)
def test_invalid_chats_are_named_by_their_number(tmp_path, values, message):
    path = tmp_path / "c.json"
    path.write_text(json.dumps(values))
    with pytest.raises(InputError) as caught:
        import_transcripts([path])
    assert f"c.json:1: {message}" in str(caught.value)


def test_an_array_that_ends_early_is_an_error_with_its_line(tmp_path):
    path = tmp_path / "c.json"
    path.write_text(json.dumps([{"messages": MESSAGES}] * 2, indent=1)[:-20])
    with pytest.raises(InputError, match=r"c.json:18: object 2: not a JSON object"):
        import_transcripts([path])
    path.write_text(json.dumps([{"messages": MESSAGES}], indent=1) + "\n[]")
    with pytest.raises(InputError, match=r"object 2: not a JSON object .text after the end"):
        import_transcripts([path])


def test_the_command_reports_roles_and_counts(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines(tmp_path / "chats.jsonl", [{"messages": [SYSTEM, *MESSAGES]}])
    done = CliRunner().invoke(build, ["import", "chats.jsonl", "-o", "d.jsonl", "--json"])
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    assert document["roles"] == {"user": "user", "assistant": "system"}
    assert document["notes"] == ["1 system messages left out"]
    assert document["warnings"] == []
