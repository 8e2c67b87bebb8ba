//! The example runs, and checks its answers.

mod join {
    include!("../examples/join.rs");
    #[test]
    fn runs() {
        main().expect("the example runs");
    }
}
