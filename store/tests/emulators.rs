//! Stores of other makers, as far as they can be emulated here.

use crate::kit::remote;
use crate::kit::tables::{compare, open, publish, table};
use pleach_set::{Content, SetError, Store};
use pleach_store::{ObjectFolder, StoreOptions};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

/// A program that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts Azurite, the emulator of Azure, and returns its address; `None` if it is not installed.
/// `PLEACH_AZURITE` is the path of `azurite-blob`.
fn azurite(folder: &std::path::Path) -> Option<(Running, String)> {
    let program = std::env::var_os("PLEACH_AZURITE")?;
    let mut child = Command::new(program)
        .args(["--blobPort", "0", "--skipApiVersionCheck", "--disableTelemetry", "--location"])
        .arg(folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("PLEACH_AZURITE is a program");
    let lines = BufReader::new(child.stdout.take().expect("a pipe"));
    let running = Running(child);
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        lines.lines().map_while(Result::ok).for_each(|line| drop(sender.send(line)));
    });
    loop {
        let line = receiver.recv_timeout(Duration::from_secs(60)).expect("Azurite says where it listens");
        if let Some((_, address)) =
            line.split_once("listens on ").or_else(|| line.split_once("listening at "))
        {
            let address = address.trim().trim_start_matches("http://");
            return Some((running, address.to_owned()));
        }
    }
}

/// The account and the key that every Azurite has.
const ACCOUNT: &str = "devstoreaccount1";
const ACCOUNT_KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

#[test]
fn sets_on_azure() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some((_running, address)) = azurite(folder.path()) else {
        eprintln!("not run: sets on Azure: install azurite, and set PLEACH_AZURITE to azurite-blob");
        return;
    };
    let cache = tempfile::tempdir().expect("a folder");
    let environment = [
        ("AZURE_STORAGE_ACCOUNT_NAME", ACCOUNT.to_owned()),
        ("AZURE_STORAGE_ACCOUNT_KEY", ACCOUNT_KEY.to_owned()),
        ("AZURE_STORAGE_ENDPOINT", format!("http://{address}/{ACCOUNT}")),
        ("AZURE_ALLOW_HTTP", "true".to_owned()),
    ];
    let options = StoreOptions::default()
        .environment(environment.map(|(name, value)| (name.to_owned(), value)))
        .cache_folder(cache.path())
        .tries(1, Duration::from_secs(5));
    let set = |name: &str| -> Arc<dyn Store> {
        Arc::new(ObjectFolder::new(remote(&format!("az://lake/{name}")), options.clone()).expect("a client"))
    };
    create_container(&address);
    let (store, rows) = (set("orders"), table(1_000, 1));
    assert!(matches!(open(&store), Err(SetError::NoSet { .. })));
    publish(&store, &rows, 300).expect("a set");
    publish(&store, &rows, 500).expect("the next generation");
    compare(&open(&set("orders")).expect("a set"), &rows).expect("answers");
    store.create_new("files/own", Content::Bytes(b"bytes")).expect("an object");
    assert!(store.create_new("files/own", Content::Bytes(b"other")).is_err());
    store.renew("files/own").expect("a young one");
    assert!(store.age("files/own").expect("an age") < Duration::from_secs(60));
    assert_eq!(store.list("files/").expect("a list").len(), 7);
    store.delete("files/own").expect("an object");
}

/// Creates the container, which no client of objects does.
fn create_container(address: &str) {
    // Its API is signed; the program of Azure and a script of Node sign it.
    let script = format!(
        "const c=require('crypto'),h=require('http');const d=new Date().toUTCString(),v='2021-08-06';\
         const s='PUT\\n\\n\\n\\n\\n\\n\\n\\n\\n\\n\\n\\nx-ms-date:'+d+'\\nx-ms-version:'+v+\
         '\\n/{ACCOUNT}/{ACCOUNT}/lake\\nrestype:container';\
         const g=c.createHmac('sha256',Buffer.from('{ACCOUNT_KEY}','base64')).update(s,'utf8').digest('base64');\
         const [host,port]='{address}'.split(':');\
         h.request({{host,port,path:'/{ACCOUNT}/lake?restype=container',method:'PUT',headers:{{'x-ms-date':d,\
         'x-ms-version':v,'Content-Length':0,Authorization:'SharedKey {ACCOUNT}:'+g}}}},\
         r=>{{console.log(r.statusCode);r.resume()}}).end();"
    );
    let done = Command::new("node").args(["-e", &script]).output().expect("node, which Azurite needs");
    assert_eq!(String::from_utf8_lossy(&done.stdout).trim(), "201", "{done:?}");
}

#[test]
fn sets_on_google() {
    eprintln!("not run: sets on Google Cloud Storage: there is no emulator here");
}
