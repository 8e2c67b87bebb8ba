//! How text for people looks where it is read: the width of the terminal, colours, and the letters of bars.

use anstream::ColorChoice;
use anstyle::{AnsiColor, Style};
use clap::ValueEnum;
use std::env;
use terminal_size::{Width, terminal_size_of};

/// Columns where nothing says how many there are, as in a pipe.
const USUAL_COLUMNS: usize = 100;

/// Heads of tables, and headings.
pub const HEAD: Style = Style::new().bold();
/// What is as it should be.
pub const GOOD: Style = AnsiColor::Green.on_default().bold();
/// What is damaged.
pub const BAD: Style = AnsiColor::Red.on_default().bold();
/// Bars.
const BAR: Style = AnsiColor::Cyan.on_default();

/// When colours are used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On terminals, unless NO_COLOR is set
    #[default]
    Auto,
    /// Also in pipes and files
    Always,
    /// Nowhere
    Never,
}

/// Selects when colours are used, for both streams.
pub fn set_color(color: Color) {
    let choice = match color {
        Color::Auto => ColorChoice::Auto,
        Color::Always => ColorChoice::Always,
        Color::Never => ColorChoice::Never,
    };
    choice.write_global();
}

/// Returns the columns for text on standard output, from 60 to 200: those that `COLUMNS` says, or those of the
/// terminal.
pub fn columns() -> usize {
    let told =
        env::var("COLUMNS").ok().and_then(|text| text.trim().parse().ok()).filter(|&columns| columns > 0);
    let of_terminal = || terminal_size_of(std::io::stdout()).map(|(Width(columns), _)| usize::from(columns));
    told.or_else(of_terminal).filter(|&columns| columns > 0).unwrap_or(USUAL_COLUMNS).clamp(60, 200)
}

/// Returns text in a style; what cannot show it strips it.
pub fn styled(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}

/// Letters of a bar: a full column, and parts of one in eighths.
const BLOCKS: [char; 8] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'];

/// Returns true unless the language of the system has other letters than those of Unicode.
fn is_unicode() -> bool {
    let named = ["LC_ALL", "LC_CTYPE", "LANG"]
        .into_iter()
        .find_map(|name| env::var(name).ok().filter(|name| !name.is_empty()));
    named.is_none_or(|name| {
        let name = name.to_ascii_lowercase();
        name.contains("utf-8") || name.contains("utf8")
    })
}

/// Returns a bar of this share of so many columns; never empty unless the share is 0.
pub fn bar(share: f64, columns: usize) -> String {
    if share <= 0.0 {
        return String::new();
    }
    if !is_unicode() {
        return "#".repeat(((share * columns as f64).round() as usize).clamp(1, columns));
    }
    let eighths = ((share * columns as f64 * 8.0).round() as usize).clamp(1, columns * 8);
    let mut bar: String = std::iter::repeat_n(BLOCKS[7], eighths / 8).collect();
    if let Some(part) = (eighths % 8).checked_sub(1) {
        bar.push(BLOCKS[part]);
    }
    bar
}

/// Gives the bars in a text their colour.
pub fn painted(text: &str) -> String {
    let is_block = |letter: char| BLOCKS.contains(&letter);
    let mut painted = String::with_capacity(text.len() + text.len() / 4);
    let mut rest = text;
    while let Some(start) = rest.find(is_block) {
        let (before, bar) = rest.split_at(start);
        let end = bar.find(|letter| !is_block(letter)).unwrap_or(bar.len());
        painted.push_str(before);
        painted.push_str(&styled(BAR, &bar[..end]));
        rest = &bar[end..];
    }
    painted.push_str(rest);
    painted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_as_long_as_their_share() {
        let length = |share| bar(share, 10).chars().count();
        assert_eq!((length(0.0), length(1e-9), length(0.5), length(1.0), length(7.0)), (0, 1, 5, 10, 10));
    }

    #[test]
    fn only_bars_are_painted() {
        let text = "a ██▌ b\n▏";
        let painted = painted(text);
        assert_ne!(painted, text);
        assert_eq!(anstream::adapter::strip_str(&painted).to_string(), text);
        assert!(painted.starts_with("a \u{1b}") && painted.contains(" b\n"), "{painted:?}");
    }
}
