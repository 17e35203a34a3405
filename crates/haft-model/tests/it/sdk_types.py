"""Checks bodies of requests against the types of the vendors' own SDKs.

Reads lines of JSON, {"name": …, "sdk": …, "body": …}, and writes one line of JSON: a list of [name, what is wrong]. Unknown keys
are errors. Pydantic does not do this for TypedDicts: it ignores unknown keys and does not look into an `Iterable`.
"""

import base64
import functools
import json
import sys
import types
import typing
from collections.abc import Mapping

import anthropic.types
import ollama._types
import openai.types.chat.completion_create_params as openai_chat
import openai.types.responses.response_create_params as openai_responses
import openrouter.components
import pydantic
import typing_extensions
from google import genai
from google.genai import _common, models
from pydantic import alias_generators

# Keys that the servers take and the SDKs' types lack, by the name of the type.
OLLAMA_KEYS = {
    # The server numbers its calls and gives them ids; results repeat the ids.
    "Message": {"tool_call_id": str},
    "ToolCall": {"id": str},
    "Function": {"index": int},
    # The type of a parameter has only a few keywords of JSON Schema.
    "Property": {"properties": dict, "required": list[str], "anyOf": list[dict]},
}
THINKING = typing.Union[anthropic.types.ThinkingBlockParam, anthropic.types.RedactedThinkingBlockParam]
# LiteLLM takes OpenAI's form. In an assistant's message it takes back what it sent of the reasoning of other vendors' models.
LITELLM_KEYS = {
    "ChatCompletionAssistantMessageParam": {"reasoning_content": str, "thinking_blocks": list[THINKING]},
}
# Google's compatible endpoint sends a signature with a call and wants it back.
COMPATIBLE_KEYS = {"ChatCompletionMessageFunctionToolCallParam": {"extra_content": dict}}

NOT_REQUIRED = (typing.NotRequired, typing_extensions.NotRequired)
REQUIRED = (typing.Required, typing_extensions.Required)
WRAPPERS = NOT_REQUIRED + REQUIRED + (typing.Annotated,)


class Checker:
    """Compares a JSON value with a type of Python."""

    def __init__(self, further_keys=None):
        self.further_keys = further_keys or {}
        self.used_keys = set()

    def errors(self, value, kind, path="body"):
        """What is wrong with the value, as texts that begin with the path."""
        kind, _ = unwrap(kind)
        origin = typing.get_origin(kind)
        arguments = typing.get_args(kind)
        if kind in (typing.Any, object):
            return []
        if kind is None or kind is type(None):
            return [] if value is None else [f"{path}: not null"]
        if origin in (typing.Literal, typing_extensions.Literal):
            fits = any(type(value) is type(choice) and value == choice for choice in arguments)
            return [] if fits else [f"{path}: {value!r:.100} is none of {arguments}"]
        if origin in (typing.Union, types.UnionType):
            return self.union(value, arguments, path)
        if typing_extensions.is_typeddict(kind):
            return self.typed_dict(value, kind, path)
        if kind is ollama._types.Image:
            return image(value, path)
        if is_ollama_model(kind):
            return self.model(value, kind, path)
        name = getattr(origin or kind, "__name__", str(kind))
        if name in ("list", "List", "Iterable", "Sequence", "SequenceNotStr"):
            return self.sequence(value, arguments, path)
        if name in ("dict", "Dict", "Mapping"):
            return self.mapping(value, arguments, path)
        # JSON has one kind of number; in Python a bool is an int. Any other class is something that a body cannot contain: a file,
        # or an answer as the object that the SDK returned.
        kinds = {str: str, bool: bool, int: int, float: (int, float)}.get(kind)
        if kinds is None or not isinstance(value, kinds) or (isinstance(value, bool) and kind is not bool):
            return [f"{path}: {value!r:.100} is no {name}"]
        return []

    def union(self, value, choices, path):
        choices = [unwrap(choice)[0] for choice in choices]
        # Ollama's functions also take plain dicts instead of its types.
        if any(is_ollama_model(choice) for choice in choices):
            choices = [choice for choice in choices if typing.get_origin(choice) is not Mapping]
        found = [self.errors(value, choice, path) for choice in choices]
        if any(not errors for errors in found):
            return []

        def distance(errors):
            heads = [error.split(": ")[0] for error in errors]
            return (path in heads, f"{path}.type" in heads or f"{path}.role" in heads, len(errors))

        return min(found, key=distance)

    def typed_dict(self, value, kind, path):
        return self.fields(value, kind, typed_dict_fields(kind), path)

    def model(self, value, kind, path):
        fields = {
            field.alias or key: (field.annotation, field.is_required()) for key, field in kind.model_fields.items()
        }
        return self.fields(value, kind, fields, path)

    def fields(self, value, kind, fields, path):
        if not isinstance(value, dict):
            return [f"{path}: {value!r:.100} is no {kind.__name__}"]
        errors = []
        further = self.further_keys.get(kind.__name__, {})
        for key, item in value.items():
            if key in fields:
                errors += self.errors(item, fields[key][0], f"{path}.{key}")
            elif key in further:
                self.used_keys.add((kind.__name__, key))
                errors += self.errors(item, further[key], f"{path}.{key}")
            else:
                errors.append(f"{path}.{key}: {kind.__name__} has no such key")
        missing = [key for key, (_, is_required) in fields.items() if is_required and key not in value]
        return errors + [f"{path}.{key}: {kind.__name__} requires it" for key in missing]

    def sequence(self, value, arguments, path):
        if not isinstance(value, list):
            return [f"{path}: {value!r:.100} is no list"]
        inner = arguments[0] if arguments else typing.Any
        return [error for at, item in enumerate(value) for error in self.errors(item, inner, f"{path}[{at}]")]

    def mapping(self, value, arguments, path):
        if not isinstance(value, dict):
            return [f"{path}: {value!r:.100} is no object"]
        inner = arguments[1] if arguments else typing.Any
        return [error for key, item in value.items() for error in self.errors(item, inner, f"{path}.{key}")]

    def unused_keys(self):
        listed = {(kind, key) for kind, keys in self.further_keys.items() for key in keys}
        return listed - self.used_keys


@functools.cache
def typed_dict_fields(kind):
    """The keys, each with its type and whether it is required."""
    fields = {}
    for key, hint in typing_extensions.get_type_hints(kind, include_extras=True).items():
        inner, requirement = unwrap(hint)
        # OpenRouter's SDK adds `_` to keys whose names Python or Pydantic use.
        fields[key.removesuffix("_")] = (inner, key in kind.__required_keys__ if requirement is None else requirement)
    return fields


def unwrap(kind):
    """The type without what surrounds it, and whether that says that a key is required."""
    requirement = None
    while True:
        origin = typing.get_origin(kind)
        if origin in WRAPPERS or hasattr(kind, "__metadata__"):
            if origin in REQUIRED + NOT_REQUIRED:
                requirement = origin in REQUIRED
            kind = typing.get_args(kind)[0]
        elif isinstance(kind, typing_extensions.TypeAliasType):
            kind = kind.__value__
        elif isinstance(origin, typing_extensions.TypeAliasType):
            kind = origin.__value__[typing.get_args(kind)]
        else:
            return kind, requirement


def is_ollama_model(kind):
    is_model = isinstance(kind, type) and issubclass(kind, pydantic.BaseModel)
    return is_model and kind.__module__ == ollama._types.__name__


def image(value, path):
    try:
        base64.b64decode(value, validate=True)
    except (TypeError, ValueError) as error:
        return [f"{path}: no base64 ({error})"]
    return []


class Gemini:
    """Its SDK has no type for a body. It is checked that the SDK makes the same body from the same values."""

    def __init__(self):
        self.client = genai.Client(api_key="none", vertexai=False)

    def errors(self, body):
        if not isinstance(body, dict) or not isinstance(body.get("generationConfig", {}), dict):
            return ["body: it or its generationConfig is no object"]
        config = dict(body.get("generationConfig", {}))
        for key in ("systemInstruction", "tools", "toolConfig"):
            if key in body:
                config[key] = body[key]
        contents = pydantic.TypeAdapter(list[genai.types.Content])
        try:
            given = genai.types._GenerateContentParameters(
                model="m",
                # Only the keys of the protocol: Python's names of the fields would be taken too.
                contents=contents.validate_json(json.dumps(body.get("contents")), by_alias=True, by_name=False),
                config=genai.types.GenerateContentConfig.model_validate_json(
                    json.dumps(config), by_alias=True, by_name=False
                ),
            )
            made = models._GenerateContentParameters_to_mldev(self.client._api_client, given, None, given)
        except ValueError as error:
            return [f"body: {error}"]
        made = _common.encode_unserializable_types(_common.convert_to_dict(made))
        made.pop("_url")
        return differences(body, json.loads(json.dumps(made)), "body")


def differences(ours, theirs, path):
    """Where two bodies differ. The SDK writes some keys in Python's form, and types of schemas in capitals; the server takes both."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        ours, theirs = ({alias_generators.to_camel(key): item for key, item in body.items()} for body in (ours, theirs))
        return [
            error
            for key in sorted(ours.keys() | theirs.keys())
            for error in differences(ours.get(key), theirs.get(key), f"{path}.{key}")
        ]
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        pairs = enumerate(zip(ours, theirs))
        return [error for at, pair in pairs for error in differences(*pair, f"{path}[{at}]")]
    if path.endswith(".type") and isinstance(ours, str):
        ours, theirs = ours.upper(), str(theirs).upper()
    # The SDK sends an empty generationConfig.
    if ours == theirs or (ours is None and theirs == {}):
        return []
    return [f"{path}: {ours!r:.100}, and the SDK sends {theirs!r:.100}"]


def main():
    kinds = {
        "openai-chat": (Checker(), openai_chat.CompletionCreateParams),
        "openai-responses": (Checker(), openai_responses.ResponseCreateParams),
        "anthropic": (Checker(), anthropic.types.MessageCreateParams),
        "ollama": (Checker(OLLAMA_KEYS), ollama._types.ChatRequest),
        "openrouter": (Checker(), openrouter.components.ChatRequestTypedDict),
        "litellm": (Checker(LITELLM_KEYS), openai_chat.CompletionCreateParams),
        "compatible": (Checker(COMPATIBLE_KEYS), openai_chat.CompletionCreateParams),
    }
    gemini = Gemini()
    refused = []
    for line in sys.stdin:
        request = json.loads(line)
        if request["sdk"] == "gemini":
            errors = gemini.errors(request["body"])
        else:
            checker, kind = kinds[request["sdk"]]
            errors = checker.errors(request["body"], kind)
        if errors:
            refused.append([request["name"], "\n".join(errors)])
    unused = {sdk: sorted(checker.unused_keys()) for sdk, (checker, _) in kinds.items() if checker.unused_keys()}
    json.dump({"refused": refused, "unused_keys": unused}, sys.stdout)


main()
