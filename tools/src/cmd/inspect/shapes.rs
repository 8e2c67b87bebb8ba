//! The trees of a file in words, and the structure whose page is shown.

use crate::render::text::{counted, grouped};
use pleach::Structure;
use pleach_format::Header;
use pleach_format::classic::paged::{Form, Paged};
use pleach_format::section::Tag;
use pleach_format::text::PAGE_KEYS;
use pleach_format::view::FastShape;

/// Returns the number of pages or nodes of a structure.
pub(super) fn pages(header: &Header, structure: Structure) -> u64 {
    let of_fast = |shape: FastShape| match (Paged::new(shape.geometry, shape.form), shape.geometry.tree()) {
        (Some(paged), _) => paged.pages(),
        (None, Some(tree)) => tree.pages().iter().map(|level| level.last + 1).sum(),
        (None, None) => 0,
    };
    match structure {
        Structure::Fast => header.fast.map_or(0, |(_, shape)| of_fast(shape)),
        Structure::Harmonia => header.harmonia.as_ref().map_or(0, |(_, tree)| tree.nodes),
        Structure::Btree => header.btree.as_ref().map_or(0, |(_, tree)| tree.shape.nodes()),
        _ => 0,
    }
}

/// Describes the trees of a file, a line each.
pub(super) fn summary(header: &Header) -> Vec<String> {
    let mut all = Vec::new();
    if let Some((_, FastShape { geometry, form, bytes })) = header.fast {
        let levels = counted(geometry.levels().into(), "level");
        let padded = if geometry.padded { "padded" } else { "packed" };
        let aligned = if geometry.aligned { ", pages within huge pages" } else { "" };
        let keys = match form {
            Form::Full => "full keys",
            Form::Delta => "distances",
            Form::Partial => "partial keys",
            Form::Auto => "distances or partial keys",
        };
        let share = bytes as f64 / (geometry.keys.max(1) * u64::from(geometry.key_bytes)) as f64;
        all.push(format!(
            "FAST      {levels}, {} of {keys}, {padded}{aligned}; d_K {}, d_L {}, d_P {}; {:.1}% of the keys' bytes",
            counted(pages(header, Structure::Fast), "page"),
            geometry.d_k,
            geometry.d_l,
            geometry.d_p,
            100.0 * share
        ));
    }
    if let Some((_, tree)) = &header.harmonia {
        all.push(format!(
            "Harmonia  {}, {} of fanout {}, {} keys each",
            counted(tree.levels.len() as u64, "level"),
            counted(tree.nodes, "node"),
            tree.fanout,
            tree.node_keys
        ));
    }
    if let Some((_, tree)) = &header.btree {
        all.push(format!(
            "B+tree    {}, {} of order {}",
            counted(tree.shape.levels().len() as u64, "level"),
            counted(tree.shape.nodes(), "node"),
            tree.shape.order()
        ));
    }
    all
}

/// Says what a look-up reads in a file that has its byte keys by page.
pub(super) fn texts(header: &Header) -> String {
    let pages = header.text.map_or(0, |(_, shape)| shape.pages);
    let pages = format!("one page of keys ({} of {PAGE_KEYS}), and one tuple line", grouped(pages));
    match header.trie {
        Some((_, trie)) => format!("reads up to {}, {pages}", counted(trie.levels.into(), "trie node")),
        None => format!("bisects the first keys of pages, and reads {pages}"),
    }
}

/// The structure whose page is shown if none is named.
pub(super) fn usual(header: Option<&Header>) -> Structure {
    let Some(header) = header.filter(|header| header.section(Tag::SPINE).is_none()) else {
        return Structure::Spine;
    };
    let trees = [Structure::Fast, Structure::Harmonia, Structure::Btree];
    trees.into_iter().find(|tree| tree.is_in(header)).unwrap_or(Structure::Spine)
}
