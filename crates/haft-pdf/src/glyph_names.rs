//! The characters of glyph names.

use std::collections::HashMap;
use std::sync::LazyLock;

/// The first of consecutive characters, and their names; `-` is an unnamed one.
const CONSECUTIVE_NAMES: &[(char, &str)] = &[
    (
        ' ',
        "space exclam quotedbl numbersign dollar percent ampersand quotesingle parenleft parenright asterisk plus comma hyphen period slash zero one two three four five six seven eight nine colon semicolon less equal greater question at",
    ),
    ('[', "bracketleft backslash bracketright asciicircum underscore grave"),
    ('{', "braceleft bar braceright asciitilde"),
    (
        '\u{a0}',
        "nbspace exclamdown cent sterling currency yen brokenbar section dieresis copyright ordfeminine guillemotleft logicalnot sfthyphen registered macron degree plusminus twosuperior threesuperior acute mu paragraph periodcentered cedilla onesuperior ordmasculine guillemotright onequarter onehalf threequarters questiondown Agrave Aacute Acircumflex Atilde Adieresis Aring AE Ccedilla Egrave Eacute Ecircumflex Edieresis Igrave Iacute Icircumflex Idieresis Eth Ntilde Ograve Oacute Ocircumflex Otilde Odieresis multiply Oslash Ugrave Uacute Ucircumflex Udieresis Yacute Thorn germandbls agrave aacute acircumflex atilde adieresis aring ae ccedilla egrave eacute ecircumflex edieresis igrave iacute icircumflex idieresis eth ntilde ograve oacute ocircumflex otilde odieresis divide oslash ugrave uacute ucircumflex udieresis yacute thorn ydieresis Amacron amacron Abreve abreve Aogonek aogonek Cacute cacute Ccircumflex ccircumflex Cdotaccent cdotaccent Ccaron ccaron Dcaron dcaron Dcroat dcroat Emacron emacron Ebreve ebreve Edotaccent edotaccent Eogonek eogonek Ecaron ecaron Gcircumflex gcircumflex Gbreve gbreve Gdotaccent gdotaccent Gcommaaccent gcommaaccent Hcircumflex hcircumflex Hbar hbar Itilde itilde Imacron imacron Ibreve ibreve Iogonek iogonek Idotaccent dotlessi IJ ij Jcircumflex jcircumflex Kcommaaccent kcommaaccent kgreenlandic Lacute lacute Lcommaaccent lcommaaccent Lcaron lcaron Ldot ldot Lslash lslash Nacute nacute Ncommaaccent ncommaaccent Ncaron ncaron napostrophe Eng eng Omacron omacron Obreve obreve Ohungarumlaut ohungarumlaut OE oe Racute racute Rcommaaccent rcommaaccent Rcaron rcaron Sacute sacute Scircumflex scircumflex Scedilla scedilla Scaron scaron Tcommaaccent tcommaaccent Tcaron tcaron Tbar tbar Utilde utilde Umacron umacron Ubreve ubreve Uring uring Uhungarumlaut uhungarumlaut Uogonek uogonek Wcircumflex wcircumflex Ycircumflex ycircumflex Ydieresis Zacute zacute Zdotaccent zdotaccent Zcaron zcaron longs",
    ),
    (
        '\u{391}',
        "Alpha Beta Gamma Delta Epsilon Zeta Eta Theta Iota Kappa Lambda Mu Nu Xi Omicron Pi Rho - Sigma Tau Upsilon Phi Chi Psi Omega Iotadieresis Upsilondieresis alphatonos epsilontonos etatonos iotatonos upsilondieresistonos alpha beta gamma delta epsilon zeta eta theta iota kappa lambda - nu xi omicron pi rho sigma1 sigma tau upsilon phi chi psi omega iotadieresis upsilondieresis omicrontonos upsilontonos omegatonos - - theta1 Upsilon1 - - phi1 omega1",
    ),
    (
        '\u{410}',
        "afii10017 afii10018 afii10019 afii10020 afii10021 afii10022 afii10024 afii10025 afii10026 afii10027 afii10028 afii10029 afii10030 afii10031 afii10032 afii10033 afii10034 afii10035 afii10036 afii10037 afii10038 afii10039 afii10040 afii10041 afii10042 afii10043 afii10044 afii10045 afii10046 afii10047 afii10048 afii10049 afii10065 afii10066 afii10067 afii10068 afii10069 afii10070 afii10072 afii10073 afii10074 afii10075 afii10076 afii10077 afii10078 afii10079 afii10080 afii10081 afii10082 afii10083 afii10084 afii10085 afii10086 afii10087 afii10088 afii10089 afii10090 afii10091 afii10092 afii10093 afii10094 afii10095 afii10096 afii10097",
    ),
    ('\u{2d8}', "breve dotaccent ring ogonek tilde hungarumlaut"),
    (
        '\u{2013}',
        "endash emdash - dblverticalbar - quoteleft quoteright quotesinglbase - quotedblleft quotedblright quotedblbase - dagger daggerdbl bullet",
    ),
    ('\u{2190}', "arrowleft arrowup arrowright arrowdown arrowboth arrowupdn"),
    ('\u{2196}', "arrownorthwest arrownortheast arrowsoutheast arrowsouthwest"),
    ('\u{21d0}', "arrowdblleft arrowdblup arrowdblright arrowdbldown arrowdblboth"),
    (
        '\u{2200}',
        "universal - partialdiff existential - emptyset Delta1 gradient element notelement - suchthat - - - product coproduct summation minus minusplus",
    ),
    ('\u{2227}', "logicaland logicalor intersection union integral"),
    ('\u{2264}', "lessequal greaterequal"),
    ('\u{2282}', "propersubset propersuperset notsubset - reflexsubset reflexsuperset"),
    ('\u{2295}', "circleplus circleminus circlemultiply circledivide circledot"),
];

/// Pairs of a character and its name.
const OTHER_NAMES: &str = "ˆ circumflex ˇ caron … ellipsis ‰ perthousand ‹ guilsinglleft › guilsinglright ⁄ fraction € Euro € euro ™ trademark Ω Ohm ƒ florin ﬀ ff ﬁ fi ﬂ fl ﬃ ffi ﬄ ffl · middot · dotmath ∗ asteriskmath √ radical ∝ proportional ∞ infinity ∠ angle ∴ therefore ∼ similar ≅ congruent ≈ approxequal ≠ notequal ≡ equivalence ⊥ perpendicular ⟨ angbracketleft ⟩ angbracketright 〈 angleleft 〉 angleright ◊ lozenge ♠ spade ♣ club ♥ heart ♦ diamond ℵ aleph ℑ Ifraktur ℜ Rfraktur ℘ weierstrass ϖ pi1 ϵ epsilon1 ϱ rho1 ℓ lscript ′ prime ″ second ′ minute ° ring1 ∥ parallel ∣ divides ≪ lessmuch ≫ greatermuch ↦ mapsto ⟶ longarrowright ◦ openbullet ⋆ star • bulletmath ⋅ dotaccentmath ∘ composite ⌊ floorleft ⌋ floorright ⌈ ceilingleft ⌉ ceilingright ⊤ latticetop ⊢ turnstileleft ⊨ satisfies ∅ emptyset1 ≜ defines ≃ similarequal ≺ precedes ≻ follows ⊂ subset ⊃ superset ⊆ subsetequal ⊇ supersetequal ≤ lessorequalslant ≥ greaterorequalslant □ square ■ blacksquare ▲ triangle △ triangleopen ✓ checkmark ∙ bulletoperator ¯ overscore ‑ hyphenminus - sfthyphen1 Ş Scedilla1 ı dotlessi1 ȷ dotlessj ß ss ℏ planckover2pi ø oslash1 − minus1 ŀ ldot1 I Icapital № afii61352 Ё afii10023 ё afii10071";

static NAMES: LazyLock<HashMap<&'static str, char>> = LazyLock::new(|| {
    let mut names = HashMap::new();
    for (first, list) in CONSECUTIVE_NAMES {
        for (char, name) in (*first..).zip(list.split(' ')) {
            names.insert(name, char);
        }
    }
    let mut others = OTHER_NAMES.split(' ');
    while let (Some(char), Some(name)) = (others.next(), others.next()) {
        names.extend(char.chars().next().map(|char| (name, char)));
    }
    names.remove("-");
    names
});

/// Returns the characters that a glyph with this name shows.
pub(crate) fn glyph_text(name: &str) -> Option<String> {
    // `a.alt` and `a.sc` are an a; `f_f_i` is three letters.
    let base = name.split('.').next().filter(|base| !base.is_empty())?;
    base.split('_').map(part_text).collect()
}

fn part_text(name: &str) -> Option<String> {
    if let Some(char) = NAMES.get(name) {
        return Some(char.to_string());
    }
    let mut chars = name.chars();
    if let (Some(only), None) = (chars.next(), chars.next()) {
        return only.is_ascii_alphabetic().then(|| only.to_string());
    }
    if let Some(hex) = name.strip_prefix("uni").filter(|hex| hex.len() >= 4 && hex.is_ascii()) {
        let units: Option<Vec<u16>> = hex
            .as_bytes()
            .chunks_exact(4)
            .map(|four| u16::from_str_radix(std::str::from_utf8(four).ok()?, 16).ok())
            .collect();
        return String::from_utf16(&units?).ok();
    }
    let hex = name.strip_prefix('u').filter(|hex| (4..=6).contains(&hex.len()))?;
    char::from_u32(u32::from_str_radix(hex, 16).ok()?).map(String::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn glyph_names_map_to_characters() {
        for (name, char) in [
            ("at", "@"),
            ("asciitilde", "~"),
            ("ydieresis", "ÿ"),
            ("longs", "ſ"),
            ("omega1", "ϖ"),
            ("omega", "ω"),
            ("afii10097", "я"),
            ("hungarumlaut", "˝"),
            ("bullet", "•"),
            ("minusplus", "∓"),
            ("integral", "∫"),
            ("reflexsuperset", "⊇"),
            ("Z", "Z"),
            ("f_f_i", "ffi"),
            ("uni20AC", "€"),
            ("u1F600", "😀"),
            ("a.alt", "a"),
        ] {
            assert_eq!(glyph_text(name).as_deref(), Some(char), "{name}");
        }
        for name in ["", ".notdef", "g12", "-", "unizzzz"] {
            assert_eq!(glyph_text(name), None, "{name}");
        }
    }
}
