//! Words in many encodings, as text and as the bytes that other programs write for them.

/// A word and its bytes.
pub(super) type Word = (&'static str, &'static [u8]);

/// Western European, of which Latin-1 is a part.
pub(super) const WINDOWS_1252: &[Word] = &[
    ("Grüße", b"Gr\xfc\xdfe"),
    ("Straße", b"Stra\xdfe"),
    ("naïve", b"na\xefve"),
    ("café", b"caf\xe9"),
    ("déjà", b"d\xe9j\xe0"),
    ("façade", b"fa\xe7ade"),
    ("señor", b"se\xf1or"),
    ("mañana", b"ma\xf1ana"),
    ("über", b"\xfcber"),
    ("schön", b"sch\xf6n"),
    ("Köln", b"K\xf6ln"),
    ("größer", b"gr\xf6\xdfer"),
    ("élève", b"\xe9l\xe8ve"),
    ("où", b"o\xf9"),
    ("œuvre", b"\x9cuvre"),
    ("“so”", b"\x93so\x94"),
    ("10 €", b"10 \x80"),
];

/// Japanese; the second byte of a letter may be an ASCII one, even a backslash.
pub(super) const SHIFT_JIS: &[Word] = &[
    ("こんにちは", b"\x82\xb1\x82\xf1\x82\xc9\x82\xbf\x82\xcd"),
    ("世界", b"\x90\xa2\x8aE"),
    ("これは", b"\x82\xb1\x82\xea\x82\xcd"),
    ("日本語の", b"\x93\xfa\x96{\x8c\xea\x82\xcc"),
    ("文章", b"\x95\xb6\x8f\xcd"),
    ("です", b"\x82\xc5\x82\xb7"),
    ("ファイル", b"\x83t\x83@\x83C\x83\x8b"),
    ("ソース", b"\x83\x5c\x81[\x83X"),
    ("表示", b"\x95\x5c\x8e\xa6"),
    ("能力", b"\x94\x5c\x97\xcd"),
    ("テスト", b"\x83e\x83X\x83g"),
    ("します", b"\x82\xb5\x82\xdc\x82\xb7"),
    ("東京", b"\x93\x8c\x8b\x9e"),
    ("から", b"\x82\xa9\x82\xe7"),
    ("、", b"\x81A"),
    ("。", b"\x81B"),
];

/// Chinese.
pub(super) const GBK: &[Word] = &[
    ("你好", b"\xc4\xe3\xba\xc3"),
    ("世界", b"\xca\xc0\xbd\xe7"),
    ("这是", b"\xd5\xe2\xca\xc7"),
    ("中文", b"\xd6\xd0\xce\xc4"),
    ("文件", b"\xce\xc4\xbc\xfe"),
    ("我们", b"\xce\xd2\xc3\xc7"),
    ("的", b"\xb5\xc4"),
    ("测试", b"\xb2\xe2\xca\xd4"),
    ("编码", b"\xb1\xe0\xc2\xeb"),
    ("北京", b"\xb1\xb1\xbe\xa9"),
    ("今天", b"\xbd\xf1\xcc\xec"),
    ("天气", b"\xcc\xec\xc6\xf8"),
    ("很好", b"\xba\xdc\xba\xc3"),
    ("，", b"\xa3\xac"),
    ("。", b"\xa1\xa3"),
    ("编辑", b"\xb1\xe0\xbc\xad"),
];

/// Korean.
pub(super) const EUC_KR: &[Word] = &[
    ("안녕하세요", b"\xbe\xc8\xb3\xe7\xc7\xcf\xbc\xbc\xbf\xe4"),
    ("세계", b"\xbc\xbc\xb0\xe8"),
    ("이것은", b"\xc0\xcc\xb0\xcd\xc0\xba"),
    ("한국어", b"\xc7\xd1\xb1\xb9\xbe\xee"),
    ("문서", b"\xb9\xae\xbc\xad"),
    ("입니다", b"\xc0\xd4\xb4\xcf\xb4\xd9"),
    ("파일", b"\xc6\xc4\xc0\xcf"),
    ("시험", b"\xbd\xc3\xc7\xe8"),
    ("편집", b"\xc6\xed\xc1\xfd"),
    ("서울", b"\xbc\xad\xbf\xef"),
    ("오늘", b"\xbf\xc0\xb4\xc3"),
    ("날씨가", b"\xb3\xaf\xbe\xbe\xb0\xa1"),
    ("좋습니다", b"\xc1\xc1\xbd\xc0\xb4\xcf\xb4\xd9"),
    ("그리고", b"\xb1\xd7\xb8\xae\xb0\xed"),
];

/// Russian.
pub(super) const KOI8_R: &[Word] = &[
    ("Привет", b"\xf0\xd2\xc9\xd7\xc5\xd4"),
    ("мир", b"\xcd\xc9\xd2"),
    ("это", b"\xdc\xd4\xcf"),
    ("русский", b"\xd2\xd5\xd3\xd3\xcb\xc9\xca"),
    ("текст", b"\xd4\xc5\xcb\xd3\xd4"),
    ("файл", b"\xc6\xc1\xca\xcc"),
    ("проверка", b"\xd0\xd2\xcf\xd7\xc5\xd2\xcb\xc1"),
    ("строка", b"\xd3\xd4\xd2\xcf\xcb\xc1"),
    ("сегодня", b"\xd3\xc5\xc7\xcf\xc4\xce\xd1"),
    ("хорошая", b"\xc8\xcf\xd2\xcf\xdb\xc1\xd1"),
    ("погода", b"\xd0\xcf\xc7\xcf\xc4\xc1"),
    ("в", b"\xd7"),
    ("и", b"\xc9"),
    ("не", b"\xce\xc5"),
    ("Москве", b"\xed\xcf\xd3\xcb\xd7\xc5"),
];
