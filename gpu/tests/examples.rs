//! The example runs, and checks its answers.

mod look_up {
    include!("../examples/look_up.rs");
    #[test]
    fn runs() {
        main().expect("the example runs");
    }
}
