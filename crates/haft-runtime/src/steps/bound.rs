//! bound: truncates a long result, with a notice that says what is missing.

use haft_tool::{Bound, Content, ErrorForm, Output, SideEffect};

/// The text to keep in the ledger because `bound` will cut it and the call cannot be repeated.
pub(crate) fn worth_keeping(output: &Output, bound: Bound, side_effect: SideEffect) -> Option<String> {
    // A call that only reads can be repeated, with another offset.
    if matches!(side_effect, SideEffect::None | SideEffect::ReadOnly) {
        return None;
    }
    if let (Some(json), Some(value)) = (bound.json, &output.structured) {
        return json.cuts(value).then(|| value.to_string());
    }
    let mut kept: Option<String> = None;
    for piece in &output.content {
        if let Content::Text { text } = piece
            && bound.cuts(text)
        {
            kept.get_or_insert_default().push_str(&text.with_gap_notice());
        }
    }
    kept
}

/// Truncates each text of the output once, or the one JSON value of which it consists. `kept_in` is the call under which the
/// ledger has the whole text.
pub(crate) fn bound(mut output: Output, bound: Bound, errors: ErrorForm, kept_in: Option<i64>) -> Output {
    let failed = output.is_error();
    if let (Some(json), Some(value)) = (bound.json, &mut output.structured) {
        let cut = json.apply(value);
        if cut && !failed {
            output.content = vec![Content::Text { text: value.to_string().into() }];
        }
        if !failed {
            return output;
        }
    }
    let mut bound = bound;
    for piece in &mut output.content {
        if let Content::Text { text } = piece {
            let rest = kept_in.map(|call| format!("the rest: haft show {call} --output"));
            let (shown, _) = bound.apply(std::mem::take(text), rest);
            bound.max_bytes = bound.max_bytes.map(|left| left.saturating_sub(shown.len()));
            *text = shown.into();
        }
    }
    match (output.error_kind, errors) {
        (None, _) | (_, ErrorForm::Message) => {}
        (Some(kind), errors) => {
            let text = errors.write(kind, output.as_text(), output.structured.as_ref()).into();
            output.content = vec![Content::Text { text }];
        }
    }
    output
}
