"""SGLang imports Triton, which does nothing without a GPU: vLLM's own placeholders stand in for it."""

import sys

from vllm.triton_utils.importing import TritonLanguagePlaceholder, TritonPlaceholder

sys.modules.setdefault("triton", TritonPlaceholder())
sys.modules.setdefault("triton.language", TritonLanguagePlaceholder())
