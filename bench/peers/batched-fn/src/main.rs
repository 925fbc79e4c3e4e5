//! The model behind batched-fn and axum: `batched-fn-server 127.0.0.1:8000 mlp.onnx libonnxruntime.so`.
//! `POST /infer` takes and gives a JSON array of 768 numbers, `POST /binary` the same as raw float32, little-endian.
use axum::{Json, Router, body::Bytes, http::StatusCode, routing::get, routing::post};
use batched_fn::batched_fn;
use ort::{session::Session, value::Tensor};
use std::cell::RefCell;

const LENGTH: usize = 768;

struct Mlp(RefCell<Session>);

impl Mlp {
    fn load() -> Self {
        let environment = ort::init_from(argument(3)).expect("ONNX Runtime's library").build().expect("an environment");
        let builder = Session::builder(&environment).expect("a builder").with_intra_threads(1).expect("one thread");
        Self(RefCell::new({ builder }.commit_from_file(argument(2)).expect("the model loads")))
    }

    fn run(&self, batch: &[Vec<f32>]) -> Vec<Vec<f32>> {
        let input = Tensor::from_array(([batch.len(), LENGTH], batch.concat())).expect("a tensor");
        let mut session = self.0.borrow_mut();
        let outputs = session.run(ort::inputs!["input" => input]).expect("the model runs");
        let (_, output) = outputs["output"].try_extract_tensor::<f32>().expect("float32");
        output.chunks_exact(LENGTH).map(<[f32]>::to_vec).collect()
    }
}

async fn predict(input: Vec<f32>) -> Result<Vec<f32>, StatusCode> {
    if input.len() != LENGTH {
        return Err(StatusCode::UNPROCESSABLE_ENTITY);
    }
    let batch_predict = batched_fn! {
        handler = |batch: Vec<Vec<f32>>, model: &Mlp| -> Vec<Vec<f32>> {
            model.run(&batch)
        };
        config = {
            max_batch_size: 64,
            max_delay: 2,
            channel_cap: Some(1024),
        };
        context = {
            model: Mlp::load(),
        };
    };
    batch_predict(input).await.map_err(|_| StatusCode::SERVICE_UNAVAILABLE)
}

async fn binary(body: Bytes) -> Result<Vec<u8>, StatusCode> {
    let input = body.chunks_exact(4).map(bytemuck::pod_read_unaligned).collect();
    Ok(bytemuck::cast_slice(&predict(input).await?).to_vec())
}

fn argument(index: usize) -> String {
    std::env::args().nth(index).expect("three arguments: address, model, library")
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let routes = Router::new()
        .route("/ready", get(async || predict(vec![0.0; LENGTH]).await.map(|_| "ready")))
        .route("/infer", post(async |Json(input)| predict(input).await.map(Json)))
        .route("/binary", post(binary));
    axum::serve(tokio::net::TcpListener::bind(argument(1)).await?, routes).await
}
