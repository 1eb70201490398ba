//! How functions in the database are called, and over which connection.

use std::future::Future;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use tenure_store::{Pending, Reply, StoreError, Told};
use tokio::sync::oneshot;

use crate::database::{Database, Value};
use crate::line::Line;
use crate::store::SqlStore;
use crate::words::{Answer, ListWords, understood};

impl<D: Database> SqlStore<D> {
    /// Calls a function with these values.
    pub(crate) fn call<T, R>(
        &self,
        line: &Arc<Line<D>>,
        function: &'static str,
        values: Vec<Value>,
        meant: impl FnOnce(T) -> Result<R, StoreError> + Send + 'static,
    ) -> Pending<'_, Reply<R>>
    where
        T: DeserializeOwned + Send + 'static,
        R: Send + 'static,
    {
        let line = Arc::clone(line);
        self.answer(self.engine.run(async move { line.call(function, &values).await }), meant)
    }

    /// The same for the session: nothing else of this node keeps it waiting.
    pub(crate) fn call_at_once<T, R>(
        &self,
        function: &'static str,
        values: Vec<Value>,
        fresh: bool,
        meant: impl FnOnce(T) -> Result<R, StoreError> + Send + 'static,
    ) -> Pending<'_, Reply<R>>
    where
        T: DeserializeOwned + Send + 'static,
        R: Send + 'static,
    {
        let line = Arc::clone(&self.session);
        let call = async move {
            if fresh {
                line.reset();
            }
            line.call_at_once(function, &values).await
        };
        self.answer(self.engine.run(call), meant)
    }

    /// The same for a request that an election waits for: the connection of the session is open when it comes.
    pub(crate) fn call_soon<T, R>(
        &self,
        function: &'static str,
        values: Vec<Value>,
        meant: impl FnOnce(T) -> Result<R, StoreError> + Send + 'static,
    ) -> Pending<'_, Reply<R>>
    where
        T: DeserializeOwned + Send + 'static,
        R: Send + 'static,
    {
        let (values, (answered, answer)) = (Arc::new(values), oneshot::channel());
        let (session, elections) = (Arc::clone(&self.session), Arc::clone(&self.elections));
        let call = async move {
            self.engine.spawn(session.call_if_idle(function, Arc::clone(&values), answered));
            match answer.await {
                Ok(Some(answer)) => answer,
                Ok(None) => self.engine.run(async move { elections.call(function, &values).await }).await,
                Err(_) => Err(StoreError::indeterminate("the database did not answer in time")),
            }
        };
        self.answer(call, meant)
    }

    fn answer<'a, T, R>(
        &'a self,
        call: impl Future<Output = Result<String, StoreError>> + Send + 'a,
        meant: impl FnOnce(T) -> Result<R, StoreError> + Send + 'a,
    ) -> Pending<'a, Reply<R>>
    where
        T: DeserializeOwned + Send + 'a,
        R: Send + 'a,
    {
        Box::pin(async move {
            // Not on the engine's thread: a long answer takes a while to read, and a renewal may be due there.
            let told = understood::<Answer<T>>(&call.await?)?.told()?;
            Ok(Told { store: told.store, value: meant(told.value)? })
        })
    }

    /// Calls a function that answers with a list.
    pub(crate) fn list<T, R>(
        &self,
        line: &Arc<Line<D>>,
        function: &'static str,
        values: Vec<Value>,
        meant: impl Fn(T) -> Result<R, StoreError> + Send + 'static,
    ) -> Pending<'_, Reply<Vec<R>>>
    where
        T: DeserializeOwned + Send + 'static,
        R: Send + 'static,
    {
        self.call(line, function, values, move |words: ListWords<T>| {
            words.list.into_iter().map(&meant).collect()
        })
    }
}
