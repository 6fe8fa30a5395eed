//! Output formats of answers: all formats of a document.

use crate::terminal;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use fwdlab_results::document::form::text::Detail;
use fwdlab_results::document::{Document, FORMS, Form, form};

/// The output format.
#[derive(Clone, Copy, Debug, clap::Args)]
#[group(multiple = false)]
pub(crate) struct FormArguments {
    /// Print it in this format
    #[arg(long = "format", value_name = "FORM", value_parser = forms())]
    form: Option<Form>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Print CSV, one line per table row
    #[arg(long)]
    csv: bool,
    /// Print Markdown
    #[arg(long)]
    markdown: bool,
}

/// The output format, with the level of detail on a terminal.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct VerboseFormArguments {
    #[command(flatten)]
    form: FormArguments,
    /// Show how each comparison was computed, and its secondary results
    #[arg(long, short)]
    verbose: bool,
}

fn forms() -> impl TypedValueParser<Value = Form> {
    let names = PossibleValuesParser::new(FORMS.map(|form| form.name));
    names.try_map(|name| Form::named(&name).ok_or("no such form"))
}

impl FormArguments {
    /// The format; `None` for the terminal's own, in colours.
    fn form(self) -> Option<Form> {
        let short = [(self.json, "json"), (self.csv, "csv"), (self.markdown, "markdown")];
        let short = short.into_iter().find(|(is_set, _)| *is_set).map(|(_, name)| name);
        self.form.or(short.and_then(Form::named)).filter(|form| form.name != "text")
    }

    /// Name of the format; `None` for the terminal's own.
    pub(crate) fn name(self) -> Option<&'static str> {
        self.form().map(|form| form.name)
    }

    /// True if the format is JSON.
    pub(crate) fn is_json(self) -> bool {
        self.form().is_some_and(|form| form.name == "json")
    }

    /// True for a machine-readable format.
    pub(crate) fn is_for_programs(self) -> bool {
        self.form().is_some_and(|form| matches!(form.name, "json" | "csv"))
    }

    /// Name of a format whose files contain a single document. `None` for other formats.
    pub(crate) fn single(self) -> Option<&'static str> {
        self.form().filter(|form| form.is_single).map(|form| form.name)
    }

    /// True if the format needs plots.
    pub(crate) fn has_pictures(self) -> bool {
        self.form().is_some_and(|form| form.has_pictures)
    }

    /// Prints the document on standard output.
    ///
    /// # Errors
    /// Fails if it cannot be written.
    pub(crate) fn print(self, document: &Document<'_>) -> anyhow::Result<()> {
        self.print_with(document, Detail::Brief)
    }

    fn print_with(self, document: &Document<'_>, detail: Detail) -> anyhow::Result<()> {
        let width = terminal::width();
        match self.form() {
            Some(form) => terminal::print(&(form.render)(document, width)?)?,
            None => {
                let lines = form::text::lines(document, width, detail);
                terminal::print(&terminal::toned(lines))?;
            }
        }
        Ok(())
    }
}

impl VerboseFormArguments {
    /// True if the output is a terminal and uses its own format.
    pub(crate) fn is_of_terminal(self) -> bool {
        self.form.form().is_none()
    }

    /// True if the format is JSON.
    pub(crate) fn is_json(self) -> bool {
        self.form.is_json()
    }

    /// Name of a format whose files contain a single document. `None` for other formats.
    pub(crate) fn single(self) -> Option<&'static str> {
        self.form.single()
    }

    /// Prints the document on standard output.
    ///
    /// # Errors
    /// Fails if it cannot be written.
    pub(crate) fn print(self, document: &Document<'_>) -> anyhow::Result<()> {
        let detail = if self.verbose { Detail::Whole } else { Detail::Brief };
        self.form.print_with(document, detail)
    }
}
