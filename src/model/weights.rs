//! The weights of a model, by role. Generic over how a matrix and a vector are kept, so that the same
//! structure holds what a file gave (`Matrix`, `Vec<f32>`) and what a device keeps.

use super::ModelConfig;
use crate::error::corrupt;
use crate::{Error, Result};

/// What a tensor is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Role {
    Embedding,
    OutputNorm,
    /// The LM head; absent when tied to the embedding.
    Head,
    /// Frequency divisors of RoPE (GGUF `rope_freqs.weight`).
    RopeFactors,
    Layer(usize, LayerRole),
}

/// What a tensor is for inside a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LayerRole {
    AttnNorm,
    Query,
    Key,
    Value,
    QueryNorm,
    KeyNorm,
    AttnSubNorm,
    AttnOutput,
    FfnNorm,
    Gate,
    Up,
    FfnSubNorm,
    Down,
}

/// A tensor by kind.
#[derive(Debug, Clone)]
pub enum Tensor<M, V> {
    Matrix(M),
    Vector(V),
}

/// One transformer layer.
#[derive(Debug, Clone)]
pub struct Layer<M, V> {
    pub attn_norm: V,
    pub query: M,
    pub key: M,
    pub value: M,
    pub query_norm: Option<V>,
    pub key_norm: Option<V>,
    pub attn_sub_norm: Option<V>,
    pub attn_output: M,
    pub ffn_norm: V,
    pub gate: M,
    pub up: M,
    pub ffn_sub_norm: Option<V>,
    pub down: M,
}

/// All weights of a model.
#[derive(Debug, Clone)]
pub struct Weights<M, V> {
    pub embedding: M,
    pub output_norm: V,
    /// `None` when the head is the embedding.
    pub head: Option<M>,
    pub layers: Vec<Layer<M, V>>,
}

impl<M, V> Weights<M, V> {
    /// The matrix that turns the last hidden state into logits.
    pub fn head(&self) -> &M {
        self.head.as_ref().unwrap_or(&self.embedding)
    }
}

impl Role {
    /// The shape `[rows, cols]` (`[n]` for vectors) that `config` prescribes; `None` where it does not.
    pub fn shape(self, config: &ModelConfig) -> Option<Vec<usize>> {
        use LayerRole::*;
        let (hidden, ffn) = (config.hidden_size, config.intermediate_size);
        Some(match self {
            Role::Embedding | Role::Head => vec![config.vocab_size, hidden],
            Role::OutputNorm => vec![hidden],
            Role::RopeFactors => vec![config.head_dim / 2],
            Role::Layer(_, role) => match role {
                AttnNorm | FfnNorm => vec![hidden],
                Query => vec![config.query_width(), hidden],
                Key | Value => vec![config.kv_width(), hidden],
                QueryNorm | KeyNorm => vec![config.head_dim],
                AttnSubNorm => vec![config.query_width()],
                AttnOutput => vec![hidden, config.query_width()],
                Gate | Up => vec![ffn, hidden],
                FfnSubNorm => vec![ffn],
                Down => vec![hidden, ffn],
            },
        })
    }
}

/// Collects tensors in whatever order the files bring them and checks that none is missing.
pub struct WeightsBuilder<M, V> {
    tensors: std::collections::BTreeMap<Role, Tensor<M, V>>,
}

impl<M, V> Default for WeightsBuilder<M, V> {
    fn default() -> Self {
        Self { tensors: Default::default() }
    }
}

impl<M, V> WeightsBuilder<M, V> {
    /// Adds one tensor.
    ///
    /// # Errors
    /// `corrupt_file` when the role is already filled.
    pub fn insert(&mut self, role: Role, tensor: Tensor<M, V>) -> Result<()> {
        match self.tensors.insert(role, tensor) {
            None => Ok(()),
            Some(_) => Err(corrupt!("the checkpoint holds {role:?} twice")),
        }
    }

    /// The whole model.
    ///
    /// # Errors
    /// `corrupt_file` naming the first tensor that `config` needs and that did not come.
    pub fn finish(mut self, config: &ModelConfig) -> Result<Weights<M, V>> {
        let head = self.optional_matrix(Role::Head);
        let layers = (0..config.num_layers).map(|index| self.layer(index, config)).collect::<Result<_>>()?;
        Ok(Weights {
            embedding: self.matrix(Role::Embedding)?,
            output_norm: self.vector(Role::OutputNorm)?,
            head,
            layers,
        })
    }

    fn layer(&mut self, index: usize, config: &ModelConfig) -> Result<Layer<M, V>> {
        use LayerRole::*;
        let at = |role| Role::Layer(index, role);
        let norm_if = |this: &mut Self, wanted: bool, role| wanted.then(|| this.vector(at(role))).transpose();
        Ok(Layer {
            attn_norm: self.vector(at(AttnNorm))?,
            query: self.matrix(at(Query))?,
            key: self.matrix(at(Key))?,
            value: self.matrix(at(Value))?,
            query_norm: norm_if(self, config.qk_norm, QueryNorm)?,
            key_norm: norm_if(self, config.qk_norm, KeyNorm)?,
            attn_sub_norm: norm_if(self, config.sub_norms, AttnSubNorm)?,
            attn_output: self.matrix(at(AttnOutput))?,
            ffn_norm: self.vector(at(FfnNorm))?,
            gate: self.matrix(at(Gate))?,
            up: self.matrix(at(Up))?,
            ffn_sub_norm: norm_if(self, config.sub_norms, FfnSubNorm)?,
            down: self.matrix(at(Down))?,
        })
    }

    fn optional_matrix(&mut self, role: Role) -> Option<M> {
        match self.tensors.remove(&role)? {
            Tensor::Matrix(matrix) => Some(matrix),
            Tensor::Vector(_) => None,
        }
    }

    fn matrix(&mut self, role: Role) -> Result<M> {
        self.optional_matrix(role).ok_or_else(|| missing(role))
    }

    fn vector(&mut self, role: Role) -> Result<V> {
        match self.tensors.remove(&role) {
            Some(Tensor::Vector(vector)) => Ok(vector),
            _ => Err(missing(role)),
        }
    }
}

fn missing(role: Role) -> Error {
    let what = match role {
        Role::Layer(index, role) => format!("{role:?} of layer {index}"),
        other => format!("{other:?}"),
    };
    corrupt!(
        "the checkpoint has no tensor for {what}: the download is incomplete, a shard is missing, or the \
         config belongs to another model"
    )
}
