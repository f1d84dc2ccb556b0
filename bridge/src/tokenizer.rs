//! Tokenizers: from tokenizer.json, or from BERT's vocab.txt, and texts to token ids.

use std::path::Path;

use tokenizers::models::wordpiece::WordPiece;
use tokenizers::normalizers::BertNormalizer;
use tokenizers::pre_tokenizers::bert::BertPreTokenizer;
use tokenizers::processors::bert::BertProcessing;
use tokenizers::{AddedToken, EncodeInput, Tokenizer, TruncationDirection, TruncationParams, TruncationStrategy};

use crate::border::{guard, slice, text_of, MkbBuffer};

pub struct MkbTokenizer {
    tokenizer: Tokenizer,
}

/// How BERT's tokenizer normalizes, and its special tokens. As in modelkit_bridge/tokenizer.h.
#[repr(C)]
pub struct MkbBertOptions {
    lower_case: i32,
    /// 1, 0, or -1 for as lower_case says.
    strip_accents: i32,
    split_chinese: i32,
    unknown: MkbText,
    separator: MkbText,
    class: MkbText,
    padding: MkbText,
    mask: MkbText,
}

#[repr(C)]
pub struct MkbText {
    data: *const u8,
    size: usize,
}

impl MkbText {
    /// # Safety
    /// `data` is null or points to `size` bytes.
    unsafe fn read(&self) -> Result<&str, String> {
        std::str::from_utf8(unsafe { slice(self.data, self.size) }).map_err(text_of)
    }
}

impl MkbTokenizer {
    /// Lengths are chosen by `truncate`, not by what the file was saved with.
    fn new(mut tokenizer: Tokenizer) -> Result<Self, String> {
        tokenizer.with_truncation(None).map_err(text_of)?;
        tokenizer.with_padding(None);
        Ok(Self { tokenizer })
    }

    fn of_json(bytes: &[u8]) -> Result<Self, String> {
        Self::new(Tokenizer::from_bytes(bytes).map_err(text_of)?)
    }

    unsafe fn of_vocabulary(path: &str, options: &MkbBertOptions) -> Result<Self, String> {
        let (unknown, separator, class, padding, mask) = unsafe {
            (
                options.unknown.read()?,
                options.separator.read()?,
                options.class.read()?,
                options.padding.read()?,
                options.mask.read()?,
            )
        };
        if !Path::new(path).is_file() {
            return Err("no such file".to_owned());
        }
        let words = WordPiece::from_file(path).unk_token(unknown.to_owned()).build().map_err(text_of)?;
        let mut tokenizer = Tokenizer::new(words);
        let id =
            |token: &str| tokenizer.token_to_id(token).ok_or_else(|| format!("the vocabulary has no token {token}"));
        id(unknown)?;
        let ends = BertProcessing::new((separator.to_owned(), id(separator)?), (class.to_owned(), id(class)?));
        let special: Vec<AddedToken> = [padding, unknown, class, separator, mask]
            .into_iter()
            .filter(|token| tokenizer.token_to_id(token).is_some())
            .map(|token| AddedToken::from(token, true))
            .collect();
        let accents = match options.strip_accents {
            -1 => None,
            strip => Some(strip != 0),
        };
        tokenizer
            .with_normalizer(Some(BertNormalizer::new(
                true,
                options.split_chinese != 0,
                accents,
                options.lower_case != 0,
            )))
            .with_pre_tokenizer(Some(BertPreTokenizer))
            .with_post_processor(Some(ends));
        tokenizer.add_special_tokens(&special);
        Self::new(tokenizer)
    }

    fn truncate(&mut self, max_length: usize, left: bool) -> Result<(), String> {
        let direction = if left { TruncationDirection::Left } else { TruncationDirection::Right };
        let rule = TruncationParams { max_length, strategy: TruncationStrategy::LongestFirst, stride: 0, direction };
        self.tokenizer.with_truncation(Some(rule)).map_err(text_of)?;
        Ok(())
    }

    /// The ids, then as many type ids, each a little-endian u32.
    fn encode(&self, text: &str, pair: Option<&str>) -> Result<Vec<u8>, String> {
        let input = match pair {
            Some(second) => EncodeInput::Dual(text.into(), second.into()),
            None => EncodeInput::Single(text.into()),
        };
        let encoding = self.tokenizer.encode(input, true).map_err(text_of)?;
        let values = encoding.get_ids().iter().chain(encoding.get_type_ids());
        Ok(values.flat_map(|value| value.to_le_bytes()).collect())
    }
}

#[no_mangle]
pub unsafe extern "C" fn mkb_tokenizer_open(
    json: *const u8,
    json_size: usize,
    tokenizer: *mut *mut MkbTokenizer,
    error: *mut MkbBuffer,
) -> i32 {
    unsafe {
        guard(error, || {
            *tokenizer = Box::into_raw(Box::new(MkbTokenizer::of_json(slice(json, json_size))?));
            Ok(0)
        })
    }
}

#[no_mangle]
pub unsafe extern "C" fn mkb_tokenizer_open_bert(
    vocabulary: MkbText,
    options: *const MkbBertOptions,
    tokenizer: *mut *mut MkbTokenizer,
    error: *mut MkbBuffer,
) -> i32 {
    unsafe {
        guard(error, || {
            *tokenizer = Box::into_raw(Box::new(MkbTokenizer::of_vocabulary(vocabulary.read()?, &*options)?));
            Ok(0)
        })
    }
}

#[no_mangle]
pub unsafe extern "C" fn mkb_tokenizer_close(tokenizer: *mut MkbTokenizer) {
    if !tokenizer.is_null() {
        drop(unsafe { Box::from_raw(tokenizer) });
    }
}

#[no_mangle]
pub unsafe extern "C" fn mkb_tokenizer_token_id(tokenizer: *const MkbTokenizer, token: MkbText) -> i64 {
    unsafe {
        let Ok(token) = token.read() else { return -1 };
        (*tokenizer).tokenizer.token_to_id(token).map_or(-1, i64::from)
    }
}

#[no_mangle]
pub unsafe extern "C" fn mkb_tokenizer_truncate(
    tokenizer: *mut MkbTokenizer,
    max_length: usize,
    left: i32,
    error: *mut MkbBuffer,
) -> i32 {
    unsafe { guard(error, || (*tokenizer).truncate(max_length, left != 0).map(|()| 0)) }
}

#[no_mangle]
pub unsafe extern "C" fn mkb_tokenizer_encode(
    tokenizer: *const MkbTokenizer,
    text: MkbText,
    pair: *const MkbText,
    tokens: *mut MkbBuffer,
    error: *mut MkbBuffer,
) -> i32 {
    unsafe {
        guard(error, || {
            let second = match pair.as_ref() {
                Some(pair) => Some(pair.read()?),
                None => None,
            };
            let encoded = (*tokenizer).encode(text.read()?, second)?;
            (*tokens).put(encoded);
            Ok(0)
        })
    }
}
