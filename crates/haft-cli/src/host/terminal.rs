//! Questions to the person at the terminal: numbered choices, or words of their own.

use std::io::{BufRead, Write};

use haft_tool::{ErrorKind, PlanReady, ToolError, UserQuestion};

use crate::cli::screen::{BOLD, FAINT, NAME, NOTE, harmless, painted};

/// Asks each question until it has an answer.
pub(super) fn ask(questions: &[UserQuestion]) -> Result<Vec<Vec<String>>, ToolError> {
    questions.iter().map(one).collect()
}

fn one(question: &UserQuestion) -> Result<Vec<String>, ToolError> {
    let UserQuestion { question: words, header, choices, several } = question;
    let mut text = format!("\n{} {}\n", painted(BOLD, &format!("[{}]", harmless(header))), harmless(words));
    for (number, choice) in (1..).zip(choices) {
        let (label, about) = (harmless(&choice.label), harmless(&choice.description));
        text.push_str(&format!(
            "  {} {label}  {}\n",
            painted(NAME, &format!("{number})")),
            painted(FAINT, &about)
        ));
    }
    let how = if *several { "Some of them, with commas" } else { "One of them" };
    let prompt = format!("{how} (1-{}), or your own words: ", choices.len());
    say(&text);
    loop {
        say(&painted(NOTE, &prompt));
        match understood(question, &line()?) {
            Ok(answer) => return Ok(answer),
            Err(why) => say(&format!("{why}\n")),
        }
    }
}

/// What a line means: numbers and labels choose, anything else is an answer as it is.
fn understood(question: &UserQuestion, line: &str) -> Result<Vec<String>, String> {
    let line = line.trim();
    if line.is_empty() {
        return Err("An answer is needed; Ctrl-C gives up.".to_owned());
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
        return Err("Only one can be chosen.".to_owned());
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
        _ if are_numbers => Err(format!("There are only the numbers 1 to {}.", choices.len())),
        _ => Ok(vec![line.to_owned()]),
    }
}

/// Shows a plan and asks whether the work may begin.
pub(super) fn approve(plan: &PlanReady) -> Result<String, ToolError> {
    let mut text = format!("\n{}\n", painted(BOLD, "The plan is ready."));
    if let Some(plan) = &plan.plan {
        text.push_str(&format!("{}\n", harmless(plan)));
    }
    for (tool, prompt) in &plan.allow {
        text.push_str(&format!("  it would like to use {}: {}\n", harmless(tool), harmless(prompt)));
    }
    say(&text);
    say(&painted(NOTE, "Begin with it? [y/N] "));
    match line()?.trim() {
        "y" | "Y" | "yes" => Ok("The user has approved the plan. Begin with it.".to_owned()),
        "" | "n" | "N" | "no" => {
            Err(ToolError::denied("The user does not approve the plan; ask what to change"))
        }
        words => Err(ToolError::denied(format!("The user does not approve the plan, and says: {words}"))),
    }
}

fn say(text: &str) {
    let mut err = anstream::stderr().lock();
    let _ = err.write_all(text.as_bytes()).and_then(|()| err.flush());
}

/// What the person types; that they leave is an end too.
fn line() -> Result<String, ToolError> {
    let mut line = String::new();
    match std::io::stdin().lock().read_line(&mut line) {
        Ok(0) => Err(ToolError::new(ErrorKind::Interrupted, "The person at the terminal gave no answer")),
        Ok(_) => Ok(line),
        Err(error) => Err(ToolError::io("read the answer", &error)),
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
        let one = |line| understood(&question(false), line);
        assert_eq!(one("2\n"), Ok(vec!["Green".to_owned()]));
        assert_eq!(one("blue"), Ok(vec!["Blue".to_owned()]));
        assert_eq!(one("rather pink, please"), Ok(vec!["rather pink, please".to_owned()]));
        assert!(one("4").is_err() && one("0").is_err() && one("1,2").is_err() && one(" ").is_err());
    }

    #[test]
    fn several_are_chosen_with_commas_once_each() {
        let some = |line| understood(&question(true), line);
        assert_eq!(some("3, 1,3"), Ok(vec!["Blue".to_owned(), "Red".to_owned()]));
        assert_eq!(some("red,2"), Ok(vec!["Red".to_owned(), "Green".to_owned()]));
        assert_eq!(some("red and pink"), Ok(vec!["red and pink".to_owned()]));
        assert!(some("1,9").is_err() && some(",").is_err());
    }
}
