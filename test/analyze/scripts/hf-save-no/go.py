from datasets import load_dataset
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, AutoTokenizer, BitsAndBytesConfig, Trainer, TrainingArguments

BASE = "meta-llama/Llama-2-7b-hf"
model = AutoModelForCausalLM.from_pretrained(
    BASE, quantization_config=BitsAndBytesConfig(load_in_4bit=True), device_map={"": 0}
)
model = get_peft_model(model, LoraConfig(r=16, lora_alpha=32, target_modules=["q_proj", "v_proj"]))
tok = AutoTokenizer.from_pretrained(BASE)
ds = load_dataset("tatsu-lab/alpaca", split="train").map(lambda e: tok(e["text"], truncation=True, max_length=512))
targs = TrainingArguments(
    "lora-out",
    per_device_train_batch_size=1,
    gradient_accumulation_steps=16,
    max_steps=300,
    bf16=True,
    gradient_checkpointing=True,
    save_strategy="no",
    report_to="none",
)
Trainer(model=model, args=targs, train_dataset=ds).train()
model.save_pretrained("lora-out/final")
