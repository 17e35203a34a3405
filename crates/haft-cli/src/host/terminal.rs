//! Questions at the terminal: numbered choices, or a free answer.

use haft_sandbox::AnswerForm;
use haft_tool::{Cancel, PlanReady, ToolError, UserQuestion};

use crate::cli::screen::{BOLD, FAINT, NAME, NOTE, sanitize, styled};
use crate::cli::terminal::ask_user;

/// Asks each question until it has an answer.
pub(super) fn ask(questions: &[UserQuestion], cancel: &Cancel) -> Result<Vec<Vec<String>>, ToolError> {
    questions.iter().map(|question| one(question, cancel)).collect()
}

fn one(question: &UserQuestion, cancel: &Cancel) -> Result<Vec<String>, ToolError> {
    let UserQuestion { question: words, header, choices, several } = question;
    let mut text = format!("\n{} {}\n", styled(BOLD, &format!("[{}]", sanitize(header))), sanitize(words));
    for (number, choice) in (1..).zip(choices) {
        let (label, about) = (sanitize(&choice.label), sanitize(&choice.description));
        text.push_str(&format!(
            "  {} {label}  {}\n",
            styled(NAME, &format!("{number})")),
            styled(FAINT, &about)
        ));
    }
    let how = if *several { "Numbers separated by commas" } else { "A number" };
    let prompt = format!("{how} (1-{}), or your own answer: ", choices.len());
    loop {
        let answer = ask_user(AnswerForm::Line, &format!("{text}{}", styled(NOTE, &prompt)), cancel)?;
        match parse_answer(question, &answer) {
            Ok(answer) => return Ok(answer),
            // With the prompt, because what is typed before the prompt does not count.
            Err(why) => text = format!("{why}\n"),
        }
    }
}

/// Interprets a line: numbers and labels choose, anything else is a free answer.
fn parse_answer(question: &UserQuestion, line: &str) -> Result<Vec<String>, String> {
    let line = line.trim();
    if line.is_empty() {
        return Err("Type an answer, or press Ctrl-C to cancel.".to_owned());
    }
    let choices = &question.choices;
    let label = |word: &str| {
        let by_label = choices.iter().find(|choice| choice.label.eq_ignore_ascii_case(word));
        let by_number = || word.parse::<usize>().ok()?.checked_sub(1).and_then(|at| choices.get(at));
        by_label.or_else(by_number).map(|choice| choice.label.clone())
    };
    if let Some(label) = label(line) {
        return Ok(vec![label]);
    }
    let words: Vec<&str> = line.split(',').map(str::trim).filter(|word| !word.is_empty()).collect();
    let are_numbers = words.iter().all(|word| word.chars().all(|c| c.is_ascii_digit()));
    if words.len() > 1 && !question.several && are_numbers {
        return Err("Choose only one.".to_owned());
    }
    let chosen: Option<Vec<String>> = words.iter().map(|word| label(word)).collect();
    match chosen {
        Some(mut chosen) if question.several && !chosen.is_empty() => {
            let mut seen = Vec::new();
            chosen.retain(|label| {
                !seen.contains(label) && {
                    seen.push(label.clone());
                    true
                }
            });
            Ok(chosen)
        }
        _ if are_numbers => Err(format!("Choose a number from 1 to {}.", choices.len())),
        _ => Ok(vec![line.to_owned()]),
    }
}

/// Shows a plan and asks for approval.
pub(super) fn approve(plan: &PlanReady, cancel: &Cancel) -> Result<String, ToolError> {
    let mut text = format!("\n{}\n", styled(BOLD, "The plan is ready."));
    if let Some(plan) = &plan.plan {
        text.push_str(&format!("{}\n", sanitize(plan)));
    }
    for (tool, prompt) in &plan.allow {
        text.push_str(&format!("  requests {}: {}\n", sanitize(tool), sanitize(prompt)));
    }
    text.push_str(&styled(NOTE, "Start with it? [y/N] "));
    match ask_user(AnswerForm::Line, &text, cancel)?.trim() {
        "y" | "Y" | "yes" => Ok("The user has approved the plan. Start with it.".to_owned()),
        "" | "n" | "N" | "no" => {
            Err(ToolError::denied("The user does not approve the plan. Ask what to change"))
        }
        words => Err(ToolError::denied(format!("The user does not approve the plan: {words}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use haft_tool::AnswerOption;

    fn question(several: bool) -> UserQuestion {
        let choice = |label: &str| AnswerOption { label: label.to_owned(), description: String::new() };
        UserQuestion {
            question: "Which?".to_owned(),
            header: "Which".to_owned(),
            choices: vec![choice("Red"), choice("Green"), choice("Blue")],
            several,
        }
    }

    #[test]
    fn numbers_and_labels_choose_and_other_words_are_the_answer() {
        let one = |line| parse_answer(&question(false), line);
        assert_eq!(one("2\n"), Ok(vec!["Green".to_owned()]));
        assert_eq!(one("blue"), Ok(vec!["Blue".to_owned()]));
        assert_eq!(one("rather pink, please"), Ok(vec!["rather pink, please".to_owned()]));
        assert!(one("4").is_err() && one("0").is_err() && one("1,2").is_err() && one(" ").is_err());
    }

    #[test]
    fn several_are_chosen_with_commas_once_each() {
        let some = |line| parse_answer(&question(true), line);
        assert_eq!(some("3, 1,3"), Ok(vec!["Blue".to_owned(), "Red".to_owned()]));
        assert_eq!(some("red,2"), Ok(vec!["Red".to_owned(), "Green".to_owned()]));
        assert_eq!(some("red and pink"), Ok(vec!["red and pink".to_owned()]));
        assert!(some("1,9").is_err() && some(",").is_err());
    }
}
