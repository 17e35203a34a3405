//! `Read` and `NotebookEdit` on notebooks, example by example.

use haft::{ErrorKind, json};

use crate::fixture::cli::CliFixture;
use crate::fixture::runtime::RuntimeFixture;

/// A notebook as Jupyter writes it, with everything that an edit could spoil.
pub(crate) const NOTEBOOK: &str = r##"{
 "cells": [
  {
   "cell_type": "markdown",
   "id": "intro",
   "metadata": {},
   "source": [
    "# Caf\u00e9\n",
    "text"
   ]
  },
  {
   "cell_type": "code",
   "execution_count": 3,
   "id": "b2c4",
   "metadata": {"z": 1.50, "a": []},
   "outputs": [
    {
     "name": "stdout",
     "output_type": "stream",
     "text": [
      "1\n",
      "2\n"
     ]
    },
    {"data": {"image/png": "iVBORw0KGgo=\n", "text/plain": "<Figure>"}, "metadata": {}, "output_type": "display_data"},
    {"ename": "E", "evalue": "v", "output_type": "error", "traceback": ["\u001b[31mE\u001b[0m: v"]}
   ],
   "source": [
    "print(1)\n",
    "print(2)"
   ]
  },
  {"cell_type": "raw", "id": "r-1", "metadata": {}, "source": "as one string"}
 ],
 "metadata": {"language_info": {"name": "julia"}},
 "nbformat": 4,
 "nbformat_minor": 5
}
"##;

fn fixture() -> RuntimeFixture {
    RuntimeFixture::of(haft::claude())
}

/// What an edit makes of [`NOTEBOOK`].
async fn edited(arguments: haft::Value) -> (String, String) {
    let fixture = fixture();
    let path = fixture.file("a.ipynb", NOTEBOOK);
    let mut all = json!({"notebook_path": path, "new_source": ""});
    all.as_object_mut().unwrap().extend(arguments.as_object().unwrap().clone());
    let said = fixture.text("NotebookEdit", all).await;
    (fixture.read("a.ipynb"), said.replace(&path, "a.ipynb"))
}

#[tokio::test]
async fn read_shows_cells_with_ids_sources_outputs_and_pictures() {
    let fixture = fixture();
    let path = fixture.file("a.ipynb", NOTEBOOK);
    let output = fixture.call("Read", json!({"file_path": path})).await.output;
    let text: String = output
        .as_text()
        .lines()
        .map(|line| format!("{}\n", line.split_once('\t').map_or(line, |line| line.1)))
        .collect();
    let expected = "=== intro (markdown) ===
# Café
text
=== b2c4 (code, run 3) ===
print(1)
print(2)
--- output ---
1
2
--- output ---
(image/png, shown as image 1)
--- error ---
E: v
=== r-1 (raw) ===
as one string
";
    assert!(text.starts_with(expected), "{text}");
    assert_eq!(
        output.content[1],
        haft::Content::Image { media_type: "image/png".into(), data: "iVBORw0KGgo=".into() }
    );
    let structured = output.structured.unwrap();
    assert_eq!(structured["type"], "notebook");
    assert_eq!(structured["file"]["cells"][1], json!({"id": "b2c4", "cellType": "code", "outputs": 3}));
}

#[tokio::test]
async fn a_notebook_that_is_none_is_shown_as_text() {
    let fixture = fixture();
    let path = fixture.file("a.ipynb", "{\"cells\": [<<<<<<< HEAD");
    assert_eq!(fixture.text("Read", json!({"file_path": path})).await, "     1\t{\"cells\": [<<<<<<< HEAD\n");
}

#[tokio::test]
async fn replacing_code_clears_what_it_had_given_and_touches_nothing_else() {
    let (file, said) = edited(json!({"cell_id": "b2c4", "new_source": "x = 'ö'\ny"})).await;
    let start = NOTEBOOK.find("   \"outputs\": [\n").unwrap();
    let end = NOTEBOOK.find("  },\n  {\"cell_type\": \"raw\"").unwrap();
    let expected = format!(
        "{}   \"outputs\": [],\n   \"source\": [\n    \"x = '\\u00f6'\\n\",\n    \"y\"\n   ]\n{}",
        NOTEBOOK[..start].replace("\"execution_count\": 3", "\"execution_count\": null"),
        &NOTEBOOK[end..]
    );
    assert_eq!(file, expected);
    assert_eq!(said, "Replaced code cell b2c4 in a.ipynb");
}

#[tokio::test]
async fn a_source_keeps_its_form() {
    let (file, _) = edited(json!({"cell_id": "r-1", "new_source": "new\n\"text\""})).await;
    assert_eq!(file, NOTEBOOK.replace("\"as one string\"", "\"new\\n\\\"text\\\"\""));
}

#[tokio::test]
async fn a_cell_can_become_another_kind() {
    let (file, _) = edited(json!({"cell_id": "b2c4", "new_source": "t", "cell_type": "markdown"})).await;
    let value: haft::Value = serde_json::from_str(&file).unwrap();
    assert_eq!(
        value["cells"][1],
        json!({"cell_type": "markdown", "id": "b2c4", "metadata": {"z": 1.50, "a": []}, "source": ["t"]})
    );
    let (file, _) = edited(json!({"cell_id": "intro", "new_source": "1", "cell_type": "code"})).await;
    let value: haft::Value = serde_json::from_str(&file).unwrap();
    assert_eq!(
        value["cells"][0],
        json!({"cell_type": "code", "id": "intro", "metadata": {}, "source": ["1"], "execution_count": null, "outputs": []})
    );
}

#[tokio::test]
async fn a_new_cell_comes_first_or_behind_another() {
    let arguments = json!({"edit_mode": "insert", "cell_type": "code", "new_source": "a\nb"});
    let (file, said) = edited(arguments.clone()).await;
    let id =
        said.strip_prefix("Inserted code cell ").unwrap().strip_suffix(" as the first in a.ipynb").unwrap();
    assert!(id.len() == 8 && id.chars().all(|char| char.is_ascii_hexdigit()), "{id}");
    let cell = format!(
        "{{\n   \"cell_type\": \"code\",\n   \"execution_count\": null,\n   \"id\": \"{id}\",\n   \"metadata\": {{}},\n   \"outputs\": [],\n   \"source\": [\n    \"a\\n\",\n    \"b\"\n   ]\n  }}"
    );
    assert_eq!(file, NOTEBOOK.replacen("  {\n", &format!("  {cell},\n  {{\n"), 1));
    let mut behind = arguments;
    behind["cell_id"] = json!("r-1");
    let (file, _) = edited(behind).await;
    assert_eq!(file.matches(",\n  {\n   \"cell_type\": \"code\",\n   \"execution_count\": null").count(), 1);
    assert!(file.contains("\"as one string\"},\n  {"), "{file}");
}

#[tokio::test]
async fn deleting_takes_the_comma_along() {
    for (id, gone) in [("intro", 0), ("b2c4", 1), ("r-1", 2), ("cell-2", 2)] {
        let (file, said) = edited(json!({"cell_id": id, "edit_mode": "delete"})).await;
        let mut expected: haft::Value = serde_json::from_str(NOTEBOOK).unwrap();
        expected["cells"].as_array_mut().unwrap().remove(gone);
        assert_eq!(serde_json::from_str::<haft::Value>(&file).unwrap(), expected, "{id}");
        assert!(said.starts_with("Deleted "), "{said}");
    }
}

#[tokio::test]
async fn what_cannot_be_done_says_why_and_changes_nothing() {
    let fixture = fixture();
    let path = fixture.file("a.ipynb", NOTEBOOK);
    let old = fixture.file("old.ipynb", "{\"nbformat\": 3, \"worksheets\": []}");
    let broken = fixture.file("broken.ipynb", "{\"cells\": [");
    let cases = [
        (
            json!({"notebook_path": path, "new_source": "x", "cell_id": "nope"}),
            ErrorKind::TargetNotFound,
            "no cell nope; it has intro (markdown: # Café), b2c4 (code: print(1)), r-1 (raw: as one string)",
        ),
        (
            json!({"notebook_path": path, "new_source": "x", "cell_id": "cell-3"}),
            ErrorKind::TargetNotFound,
            "no cell cell-3",
        ),
        (
            json!({"notebook_path": path, "new_source": "x"}),
            ErrorKind::InvalidArguments,
            "cell_id: it is needed",
        ),
        (
            json!({"notebook_path": path, "new_source": "x", "edit_mode": "insert"}),
            ErrorKind::InvalidArguments,
            "cell_type: it is needed",
        ),
        (
            json!({"notebook_path": path, "new_source": "x", "cell_type": "raw"}),
            ErrorKind::InvalidArguments,
            "cell_type",
        ),
        (
            json!({"notebook_path": old, "new_source": "x", "cell_id": "cell-0"}),
            ErrorKind::ExecutionFailed,
            "it says nbformat 3",
        ),
        (
            json!({"notebook_path": broken, "new_source": "x", "cell_id": "cell-0"}),
            ErrorKind::ExecutionFailed,
            "not JSON",
        ),
        (
            json!({"notebook_path": fixture.path("no.ipynb"), "new_source": "x", "cell_id": "a"}),
            ErrorKind::FileNotFound,
            "does not exist",
        ),
    ];
    for (arguments, kind, told) in cases {
        let (found, message) = fixture.fails("NotebookEdit", arguments.clone()).await;
        assert!(found == kind && message.contains(told), "{arguments}: {found}: {message}");
    }
    assert_eq!(fixture.read("a.ipynb"), NOTEBOOK);
}

#[test]
fn an_edit_is_recorded_and_can_be_undone() {
    let cli = CliFixture::new();
    cli.write("a.ipynb", NOTEBOOK);
    let arguments = json!({"notebook_path": cli.path("a.ipynb"), "cell_id": "b2c4", "new_source": "x"});
    assert_eq!(cli.call("NotebookEdit", &arguments).code, 0);
    assert_ne!(cli.read("a.ipynb"), NOTEBOOK);
    assert_eq!(cli.haft(&["undo", "--yes"]).code, 0);
    assert_eq!(cli.read("a.ipynb"), NOTEBOOK);
}
