//! Object stores by URL, for tables of other formats: `s3://` and `http(s)://`.

use datafusion::common::DataFusionError;
use datafusion::error::Result;
use datafusion::execution::object_store::{DefaultObjectStoreRegistry, ObjectStoreRegistry};
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use object_store::ObjectStore;
use object_store::aws::AmazonS3Builder;
use object_store::http::HttpBuilder;
use std::sync::Arc;
use url::Url;

/// Returns a runtime whose tables may be in object stores. Credentials are those of the environment.
///
/// # Errors
/// Those of the engine.
pub(crate) fn runtime() -> Result<Arc<RuntimeEnv>> {
    let stores = Arc::new(Stores::default());
    Ok(Arc::new(RuntimeEnvBuilder::new().with_object_store_registry(stores).build()?))
}

/// Makes stores when they are asked for the first time.
#[derive(Debug, Default)]
struct Stores(DefaultObjectStoreRegistry);

impl ObjectStoreRegistry for Stores {
    fn register_store(&self, url: &Url, store: Arc<dyn ObjectStore>) -> Option<Arc<dyn ObjectStore>> {
        self.0.register_store(url, store)
    }

    fn deregister_store(&self, url: &Url) -> Result<Arc<dyn ObjectStore>> {
        self.0.deregister_store(url)
    }

    fn get_store(&self, url: &Url) -> Result<Arc<dyn ObjectStore>> {
        if let Ok(store) = self.0.get_store(url) {
            return Ok(store);
        }
        let host = url.host_str().unwrap_or_default();
        let store: Arc<dyn ObjectStore> = match url.scheme() {
            "s3" => {
                let store = AmazonS3Builder::from_env().with_bucket_name(host).build();
                Arc::new(store.map_err(failed)?)
            }
            "http" | "https" => {
                let base = url[..url::Position::BeforePath].to_owned();
                Arc::new(HttpBuilder::new().with_url(base).build().map_err(failed)?)
            }
            _ => return self.0.get_store(url),
        };
        self.0.register_store(url, Arc::clone(&store));
        Ok(store)
    }
}

fn failed(error: object_store::Error) -> DataFusionError {
    DataFusionError::ObjectStore(Box::new(error))
}
