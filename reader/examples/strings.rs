//! Texts and byte strings, as keys and as values.

use pleach::{Builder, BytesMap, Map};

pub(crate) fn main() -> pleach::Result<()> {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let path = folder.path().join("words.pleach");

    // Texts to numbers.
    let words = ["pear", "peach", "apple", "plum"];
    Builder::new().build(&path, words.map(|word| (word, word.len() as u32)))?;
    let lengths: BytesMap<u32> = BytesMap::open(&path)?;
    assert_eq!(lengths.get("peach")?, Some(5));
    assert_eq!(lengths.get_many(&["plum", "grape"])?, [Some(4), None]);

    // In the order of their bytes: by prefix, and between two texts.
    let found: Vec<(Vec<u8>, u32)> = lengths.prefix("pea")?.collect::<Result<_, _>>()?;
    assert_eq!(found, [(b"peach".to_vec(), 5), (b"pear".to_vec(), 4)]);
    assert_eq!(lengths.count("b".."pear")?, 1);
    assert_eq!(lengths.ceiling("b")?, Some((b"peach".to_vec(), 5)));

    // Texts to texts. The iterator form yields each key with its value.
    let colours = [("apple", "red"), ("pear", "green")];
    Builder::new().build(&path, colours)?;
    let colours: BytesMap<String> = BytesMap::open(&path)?;
    for found in colours.many(["apple", "plum"]) {
        let (fruit, colour) = found?;
        assert_eq!(colour.is_some(), fruit == "apple");
    }

    // Numbers to texts, and to bytes.
    Builder::new().build(&path, [(404u32, "not found"), (200, "fine")])?;
    let reasons: Map<u32, String> = Map::open(&path)?;
    assert_eq!(reasons.get(404)?.as_deref(), Some("not found"));
    assert_eq!(Map::<u32, Vec<u8>>::open(&path)?.get(200)?.as_deref(), Some(&b"fine"[..]));

    // Keys of one length, such as hashes.
    let hash = |number: u8| [number.wrapping_mul(37); 16];
    Builder::new().build(&path, (0..200u8).map(|number| (hash(number), u32::from(number))))?;
    assert_eq!(BytesMap::<u32>::open(&path)?.get(hash(123))?, Some(123));
    println!("{} reasons", reasons.len());
    Ok(())
}
