//! What every function of the C interface shares: buffers, texts, and the guard that turns errors and panics into messages.

use std::any::Any;
use std::panic::{catch_unwind, set_hook, AssertUnwindSafe};
use std::sync::Once;

/// Memory of ours that the caller reads and gives back.
#[repr(C)]
pub struct MkbBuffer {
    data: *mut u8,
    size: usize,
    capacity: usize,
}

impl MkbBuffer {
    /// Takes the memory out, leaving the buffer empty.
    pub fn take(&mut self) -> Vec<u8> {
        if self.data.is_null() {
            return Vec::new();
        }
        let (data, size, capacity) = (self.data, self.size, self.capacity);
        self.data = std::ptr::null_mut();
        self.size = 0;
        self.capacity = 0;
        // SAFETY: a buffer with data was filled by `put` from a Vec of this size and capacity, and is emptied above.
        unsafe { Vec::from_raw_parts(data, size, capacity) }
    }

    pub fn put(&mut self, bytes: Vec<u8>) {
        drop(self.take());
        let mut bytes = std::mem::ManuallyDrop::new(bytes);
        self.data = bytes.as_mut_ptr();
        self.size = bytes.len();
        self.capacity = bytes.capacity();
    }
}

#[no_mangle]
pub unsafe extern "C" fn mkb_buffer_free(buffer: *mut MkbBuffer) {
    if let Some(buffer) = unsafe { buffer.as_mut() } {
        drop(buffer.take());
    }
}

fn panic_text(payload: Box<dyn Any + Send>) -> String {
    match (payload.downcast_ref::<&str>(), payload.downcast_ref::<String>()) {
        (Some(text), _) => (*text).to_owned(),
        (_, Some(text)) => text.clone(),
        _ => "the reader failed".to_owned(),
    }
}

/// Runs `work`; an error or a panic becomes the message in `error`, and -1.
///
/// # Safety
/// `error` is null or points to a valid buffer.
pub unsafe fn guard(error: *mut MkbBuffer, work: impl FnOnce() -> Result<i32, String>) -> i32 {
    static QUIET: Once = Once::new();
    QUIET.call_once(|| set_hook(Box::new(|_| {})));
    let message = match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(code)) => return code,
        Ok(Err(message)) => message,
        Err(payload) => panic_text(payload),
    };
    if let Some(error) = unsafe { error.as_mut() } {
        error.put(message.into_bytes());
    }
    -1
}

pub fn text_of(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// # Safety
/// `data` is null or points to `size` values.
pub unsafe fn slice<'a, T>(data: *const T, size: usize) -> &'a [T] {
    if data.is_null() {
        &[]
    } else {
        unsafe { std::slice::from_raw_parts(data, size) }
    }
}
