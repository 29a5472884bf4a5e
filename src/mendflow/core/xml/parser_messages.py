"""The parser's errors in plain words."""

from typing import Final

DEFAULT_MESSAGE: Final = "it is not well formed here; look for a `<` or `&` that should be `&lt;` or `&amp;`"
NOTHING: Final = "it does not begin with an element"
MESSAGES: Final = {
    "ERR_DOCUMENT_EMPTY": NOTHING,
    "ERR_DOCUMENT_END": "something stands after the end of its only element",
    "ERR_TAG_NOT_FINISHED": "it ends before all its elements are closed",
    "ERR_TAG_NAME_MISMATCH": "an element is closed that is not the one that was opened last",
    "ERR_GT_REQUIRED": "a tag is not ended with `>`",
    "ERR_LTSLASH_REQUIRED": "an element is not closed",
    "ERR_ATTRIBUTE_NOT_STARTED": "the value of an attribute does not stand in quotation marks",
    "ERR_ATTRIBUTE_NOT_FINISHED": "the value of an attribute has no end",
    "ERR_ATTRIBUTE_WITHOUT_VALUE": "an attribute has no value",
    "ERR_ATTRIBUTE_REDEFINED": "an element has the same attribute twice",
    "ERR_LT_IN_ATTRIBUTE": "the value of an attribute holds a `<`; write it as `&lt;`",
    "ERR_UNDECLARED_ENTITY": "it uses an entity that XML does not know by itself; write the character, or its number",
    "WAR_UNDECLARED_ENTITY": "it uses an entity that XML does not know by itself; write the character, or its number",
    "ERR_ENTITYREF_SEMICOL_MISSING": "a `&` begins no entity; write it as `&amp;`",
    "ERR_NAME_REQUIRED": "a name is missing after `<` or `&`; write them as `&lt;` and `&amp;` where they are meant",
    "ERR_INVALID_CHAR": "it holds a character that XML cannot hold",
    "ERR_INVALID_CHARREF": "it names a character by a number that XML cannot hold",
    "ERR_INVALID_ENCODING": "it holds a character that XML cannot hold",
    "ERR_COMMENT_NOT_FINISHED": "a comment has no end",
    "ERR_HYPHEN_IN_COMMENT": "a comment holds `--`",
    "ERR_CDATA_NOT_FINISHED": "a CDATA section has no end",
    "ERR_PI_NOT_FINISHED": "an instruction has no end",
    "ERR_XMLDECL_NOT_FINISHED": "its first line, <?xml ...?>, has no end",
    "ERR_RESERVED_XML_NAME": "<?xml ...?> stands elsewhere than at the very beginning",
    "ERR_RESOURCE_LIMIT": "it is deeper, or has longer parts, than is ever taken",
    "ERR_NAME_TOO_LONG": "a name in it is too long",
    "NS_ERR_UNDEFINED_NAMESPACE": "a prefix is used that no xmlns says the meaning of",
    "NS_ERR_XML_NAMESPACE": "a namespace is said to be what it cannot be",
    "WAR_NS_URI": "an xmlns names a namespace that is no URI; one has no blanks or brackets, such as `urn:orders`",
    "NS_ERR_QNAME": "a name has a colon where it may not",
    "NS_ERR_ATTRIBUTE_REDEFINED": "an element has the same attribute twice",
}


def parser_message(name: str) -> str:
    return MESSAGES.get(name, DEFAULT_MESSAGE)
