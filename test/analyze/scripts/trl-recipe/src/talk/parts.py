from transformers import AutoModelForCausalLM, AutoTokenizer


def model_of(model_args):
    return AutoModelForCausalLM.from_pretrained(model_args.model_name_or_path)


def tokenizer_of(model_args):
    return AutoTokenizer.from_pretrained(model_args.model_name_or_path)
